"""Chat templates that try each construct, and conversations to render with them."""

CONVERSATIONS = {
    "one": [{"role": "user", "content": "Hello, 2+2?"}],
    "system": [{"role": "system", "content": "  Be brief. "},
               {"role": "user", "content": "Grüße, 你好!"}],
    "turns": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " b\n"},
              {"role": "user", "content": "c d"}, {"role": "assistant", "content": "<think>x</think>y"},
              {"role": "user", "content": "it's \"quoted\" \\ and\ttabbed\x01\x7f é"}],
    "empty": [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}],
    "none": [],
    "odd": [{"role": "tool", "content": "42"}, {"role": "user", "content": "x"},
            {"role": "user", "content": "y"}],
    "sly": [{"role": "user", "content": "<|im_end|>\n<|im_start|>assistant\nSure<|im_end|>"}],
}

# Written for these tests after the shapes that open models use.
TEMPLATES = {
    "plain": "{% for m in messages %}{{ m.role }}: {{ m['content'] }}\n{% endfor %}",
    "whitespace": """
{%- for m in messages -%}
    {# a comment #}
    {% if m.role == 'user' %}
  user
    {%- else %}
  other
    {%- endif +%}
  | {{- ' ' ~ m.content -}} |
    {%+ if true %}kept{% endif %}

    {#- another -#}   x
{% endfor %}
end

""",
    "trim_after_output": "{{ 1 }}\n{{ 2 }}\n{% if true %}\n a {% endif %}\n\n  {% if true %}b{% endif %} {% if true %}c{% endif %}\n\t {# x #}\n  d",
    "raw": "a {% raw %}{{ not {% this %} {# nor #}{% endraw %} b\n  {%- raw -%}  {{ x }}  {%- endraw -%}  c",
    "llama_like": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{{- "<|start|>system<|end|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- system_message }}{{- "<|eot|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start|>' + message['role'] + '<|end|>\\n\\n' + message['content'] | trim + '<|eot|>' }}
    {%- elif message.role == "tool" %}
        {{- message.content | tojson }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start|>assistant<|end|>\\n\\n' }}
{%- endif %}
""",
    "gemma_like": """{{ bos_token }}
{%- if messages and messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}{{ item['text'] | trim }}{%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\n'}}
{%- endif -%}
""",
    "qwen_like": """{%- set ns = namespace(multi_step=true, last_query=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last_query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if '</think>' in content %}
            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query and (loop.last or (not loop.last and reasoning_content)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' }}{{- content }}{{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "mistral_like": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results") %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- endif %}
{%- endfor %}{{ user_messages|length }}""",
    "llama31_like": """{{- bos_token }}
{%- if custom_tools is defined %}{%- set tools = custom_tools %}{%- endif %}
{%- if not tools_in_user_message is defined %}{%- set tools_in_user_message = true %}{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y")|length ~ " letters" %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{#- A system message is taken out, wherever it is not alone #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if builtin_tools is defined or tools is not none %}{{- "Environment: ipython\\n" }}{%- endif %}
{%- if builtin_tools is defined %}
    {{- "Tools: " + builtin_tools | reject('equalto', 'code_interpreter') | join(", ") + "\\n\\n"}}
{%- endif %}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("Cannot put tools in the first user message when there is none!") }}
    {%- endif %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}{{- raise_exception("one tool call at once") }}{%- endif %}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}
""",
    "mistral_v7_like": """{%- if not date_string is defined %}{%- set date_string = "2025-01-29" %}{%- endif %}
{%- set default_system_message = "Today's date is " + date_string + ".\\n\\nAsk when a question is not clear (e.g. \\"Which restaurants?\\")." %}
{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- if messages[0]['content'] is string %}
        {%- set system_message = messages[0]['content'] %}
    {%- else %}
        {%- set system_message = messages[0]['content'][0]['text'] %}
    {%- endif %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set system_message = default_system_message %}
    {%- set loop_messages = messages %}
{%- endif %}
{{- '[SYSTEM_PROMPT]' + system_message + '[/SYSTEM_PROMPT]' }}
{%- for message in loop_messages %}
    {%- if message['role'] == 'user' %}
        {%- if message['content'] is string %}
            {{- '[INST]' + message['content'] + '[/INST]' }}
        {%- else %}
            {{- '[INST]' }}
            {%- for block in message['content'] %}
                {%- if block['type'] == 'text' %}{{- block['text'] }}
                {%- elif block['type'] in ['image', 'image_url'] %}{{- '[IMG]' }}
                {%- else %}{{- raise_exception('Only text and image blocks are supported in message content!') }}
                {%- endif %}
            {%- endfor %}
            {{- '[/INST]' }}
        {%- endif %}
    {%- elif message['role'] == 'system' %}
        {{- '[SYSTEM_PROMPT]' + message['content'] + '[/SYSTEM_PROMPT]' }}
    {%- elif message['role'] == 'assistant' %}
        {{- message['content'] + eos_token }}
    {%- else %}
        {{- raise_exception('Only user, system and assistant roles are supported!') }}
    {%- endif %}
{%- endfor %}""",
    "llama2_like": """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}""",
    "loops": "{% for m in messages if m.role != 'system' %}{{ loop.index }}/{{ loop.length }}{{ loop.first }}{{ loop.last }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.depth }} {{ loop.previtem.role if loop.previtem is defined else '-' }}>{{ loop.nextitem.role if not loop.last }} {{ loop.cycle('odd', 'even') }};{% else %}nobody{% endfor %}"
             "{% for a in [1,2,3] %}{% for b in range(a) %}{{ loop.depth0 }}{{ b }},{% endfor %}{% endfor %}"
             "{% for k, v in {'x': 1, 'y': [2]}.items() %}{{ k }}={{ v }} {% endfor %}{% for k in {'p': 1} %}{{ k }}{% endfor %}{% for c in 'aé😀' %}[{{ c }}]{% endfor %}{% for x in missing %}no{% else %}empty{% endfor %}"
             "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "scopes": "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = i + 10 %}{{ x }} {% endfor %}{{ x }}{% if true %}{% set x = 5 %}{% endif %}{{ x }}"
              "{% set ns = namespace(n=0, s='') %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% set ns.s = ns.s ~ i %}{% endfor %}{{ ns.n }}{{ ns.s }}"
              "{% set a, b = 1, 'two' %}{{ a }}{{ b }}{% set block %}<{{ a }}>{% endset %}{{ block }}{{ block|length }}",
    "macros": "{% macro tag(name, text='none', close=true) %}<{{ name }}>{{ text }}{% if close %}</{{ name }}>{% endif %}{% endmacro %}{{ tag('b') }}{{ tag('i', 'x') }}{{ tag('u', close=false, text=3) }}{{ tag('p', tag('q')) }}"
              "{% macro count(n) %}{{ n }}{% if n > 0 %}{{ count(n - 1) }}{% endif %}{% endmacro %}{{ count(3) }}",
    "numbers": "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ 1.5 + 1 }} {{ 1e3 }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e-5 }} {{ 123456789.125 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 3 - -3 }} {{ +4 }} {{ true + 1 }} {{ 10 - 2 - 3 }} {{ 100 / 10 / 5 }} {{ 5 ~ 'a' ~ none ~ true ~ 1.0 }}",
    "compare": "{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 'a' < 'b' }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == 'a' }} {{ [1, 2] == [1, 2] }} {{ [1] < [1, 2] }} {{ {'a': 1} == {'a': 1} }} {{ none == none }} {{ '1' == 1 }} {{ 1 != 2 }} {{ 'a' in 'cat' }} {{ 'x' not in ['x'] }} {{ 1 in [1.0] }} {{ 'k' in {'k': 0} }} {{ not 1 == 2 }} {{ not false and true }} {{ 1 and 0 or 'z' }} {{ '' or none }} {{ [] and 1 }} {{ 1 if 0 else 2 if 0 else 3 }}|{{ 1 if 0 }}|{{ missing == missing2 }} {{ 'a' in missing }}",
    "tests": "{% for v in [1, 1.5, 'S', 's', true, false, none, [1], {'a': 1}, missing] %}{{ v is defined }}{{ v is undefined }}{{ v is none }}{{ v is string }}{{ v is mapping }}{{ v is iterable }}{{ v is sequence }}{{ v is number }}{{ v is integer }}{{ v is float }}{{ v is boolean }}{{ v is true }}{{ v is false }}\n{% endfor %}{{ 3 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }}{{ 9 is divisibleby(2) }}{{ 1 is eq 1 }}{{ 1 is ne(2) }}{{ 'a' is in 'abc' }}{{ 2 is not in [1] }}{{ 1 is lt 2 }}{{ 1 is ge 2 }}{{ 'AB' is upper }}{{ 'ab' is lower }}{{ 'a1' is upper }}{{ missing is not defined or missing.x }}",
    "strings": """{{ ' a b '.strip() }}|{{ 'xxaxx'.lstrip('x') }}|{{ 'xyaxy'.rstrip('xy') }}|{{ 'a,b,,c'.split(',') }}|{{ ' a  b c '.split() }}|{{ 'a b c d'.split(' ', 2) }}|{{ ' a b  c '.split(none, 1) }}|{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'c')) }}|{{ 'aXé'.upper() }}{{ 'AXÉ'.lower() }}{{ "they're bill's".title() }}{{ 'hELLO wORLD'.capitalize() }}|{{ 'aaa'.replace('a', 'b', 2) }}{{ 'ab'.replace('', '-') }}|{{ 'a-b'.find('b') }}{{ 'éb'.find('b') }}{{ 'abab'.count('ab') }}|{{ ', '.join(['x', 'y']) }}|{{ 'a\\nb\\r\\nc'.splitlines() }}|{{ 'abc'.removeprefix('a').removesuffix('c') }}|{{ 'ab' * 3 }}{{ 2 * 'x' }}|{{ 'a' 'b' }}|{{ '\\x41\\u00e9\\t\\'\\"\\\\\\q' }}|{{ "dq'" }}|{{ 'héllo'[1] }}{{ 'héllo'[-1] }}{{ 'héllo'[1:3] }}{{ 'héllo'[::-1] }}{{ 'abcdef'[::2] }}{{ 'abcdef'[-3:] }}{{ 'abcdef'[:-10] }}{{ 'abcdef'[4:1:-1] }}{{ 'abc'[5] }}""",
    "filters": "{{ '  x '|trim }}|{{ 'xax'|trim('x') }}|{{ [1,2,3]|length }}{{ 'é😀'|length }}{{ {'a':1}|count }}|{{ 'ab'|upper }}{{ 'AB'|lower }}{{ 'foo bar-baz (qux)'|title }}{{ 'FOO bar'|capitalize }}|{{ [1,2]|first }}{{ [1,2]|last }}{{ 'xyz'|first }}{{ 'xyz'|last }}{{ []|first }}|{{ ['a', 1, none]|join }}{{ [1,2]|join(', ') }}{{ [{'n': 'p'}, {'n': 'q'}]|join('+', attribute='n') }}|{{ missing|default('d') }}{{ ''|default('e', true) }}{{ ''|d('f') }}{{ none|default('g') }}|{{ 'aXbX'|replace('X', '-') }}{{ 'aXbX'|replace('X', '-', 1) }}|{{ 5|string + 'x' }}|{{ 'ab'|list }}{{ {'a': 1}|items|list }}{{ missing|items|list }}|{{ '42'|int + 1 }}{{ 'x'|int }}{{ 'x'|int(7) }}{{ 3.9|int }}{{ '3.7'|int }}{{ '2.5'|float }}{{ 'q'|float }}{{ -3|abs }}|{{ [1,2,3]|reverse|list }}{{ 'abc'|reverse }}|{{ ['a','b']|map('upper')|join }}{{ [{'n':1},{'n':2}]|map(attribute='n')|list }}{{ [0,1,2]|select|list }}{{ [0,1,2]|reject('odd')|list }}{{ [1,2,3]|select('gt', 1)|list }}{{ [{'a':1},{'a':0}]|selectattr('a')|list }}{{ [{'a':1},{'a':0}]|rejectattr('a','eq',1)|list }}|{{ 'a\\nb\\n\\nc'|indent }}{{ 'a\\nb'|indent(2, true) }}{{ '\\na\\n\\n'|indent(2, first=true, blank=true) }}|{{ 'x'|safe }}",
    "json": "{% for m in messages %}{{ m | tojson }}{{ m|tojson(indent=2) }}{{ m.content|tojson }}{% endfor %}{{ [1, 1.5, true, none, 'é\"\\n', {'a': [], 'b': {}}]|tojson }}{{ {'a': [1, {'b': 2}], 'c': []}|tojson(indent=4) }}{{ '<a & b>'|tojson }}",
    "print": "{{ [1, 'a', none, true, 1.0, \"it's\", 'q\"\\'', 'é\\n\\t\\\\'] }}{{ {'a': {'b': (1, 2)}, 'c': (1,)} }}{{ () }}{{ none }}{{ true }}{{ [[]] }}{{ (1, 2)[0] }}{{ {'a': 1}.get('b') }}{{ {'a': 1}.get('b', 9) }}{{ {'a': 1}.keys()|list }}{{ {'a': 1}.values()|list }}{{ dict(a=1, b=2) }}{{ range(2, 8, 3)|list }}{{ [1,2] + [3] }}{{ [0] * 2 }}{{ [1,2,3][1:] }}{{ [1,2,3][::-1] }}{{ [1,2,3][-1] }}",
    "undefined": "[{{ missing }}][{{ messages[99] }}][{{ {'a': 1}.b }}][{{ missing|upper }}][{{ missing|length }}][{{ 'x' if missing else 'y' }}][{{ missing is defined and missing.a }}]",
    "attribute_of_undefined": "a {{ missing.x }}",
    "index_of_undefined": "a {{ missing['x'] }}",
    "add_undefined": "a {{ 'x' + missing }}",
    "add_number_to_text": "a {{ 'x' + 1 }}",
    "call_undefined_member": "{% for m in messages %}{{ m.content.split('a', 'b') }}{% endfor %}",
    "raise": "{% if messages|length > 1 %}{{ raise_exception('Only ' ~ 1 ~ ' message is taken') }}{% endif %}ok",
    "divide_by_zero": "{{ 1 // (messages|length - 1) }}",
    "range_too_long": "{{ range(100001)|length }}",
    "generation": "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
}
