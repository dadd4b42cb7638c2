"""Word banks of the prompts generator: what prompts can be about."""


def split(text):
    return [entry.strip() for entry in text.replace("\n", " ").split("|") if entry.strip()]


TOPICS = {
    "science": split("""
        photosynthesis | black holes | plate tectonics | the water cycle | how vaccines work | DNA and heredity |
        the periodic table | gravity | electric current | magnetism | the greenhouse effect | evolution by natural
        selection | cells and their parts | the speed of light | radioactive decay | sound waves | lenses and
        mirrors | acids and bases | the scientific method | antibiotics | the human heart | the nervous system |
        digestion | bacteria and viruses | comets | the phases of the moon | tides | volcanoes | earthquakes |
        fossils | crystals | superconductors | lasers | friction | pendulums | entropy | catalysts | enzymes |
        stem cells | the ozone layer | rainbows | lightning | snowflakes | glaciers | coral reefs | pollination |
        symbiosis | food chains | camouflage | hibernation | bird migration | echolocation | bioluminescence |
        fermentation | soil and its layers | the carbon cycle | nuclear fusion | quantum tunnelling | relativity |
        dark matter | exoplanets | the life of a star | meteor showers | satellites in orbit | space telescopes"""),
    "technology": split("""
        how search engines work | encryption | the internet protocol | barcodes | touch screens | batteries |
        solar panels | wind turbines | electric cars | hybrid engines | 3D printing | robots in factories |
        machine learning | neural networks | spam filters | recommendation systems | databases | version control |
        cloud storage | operating systems | compilers | computer memory | processors and cores | graphics cards |
        Wi-Fi | Bluetooth | GPS | radar | sonar | digital cameras | image compression | audio formats | streaming
        video | passwords and their managers | two-factor login | phishing | backups | open-source licences |
        software testing | code review | debugging | web browsers | cookies on websites | accessibility on the web |
        data centres | quantum computers | drones | smart thermostats | elevators | bridges | tunnels | dams |
        sewing machines | typewriters | the printing press | steam engines | bicycles and their gears | clocks"""),
    "history": split("""
        the Roman roads | the Silk Road | the building of the pyramids | the Black Death | the Renaissance |
        the French Revolution | the Industrial Revolution | the age of sail | the Hanseatic League | the samurai |
        the Vikings | the Mongol empire | the Aztecs | the Incas | the Ottoman empire | Ancient Greece |
        the Library of Alexandria | the Magna Carta | the abolition of slavery | women's right to vote |
        the railway age | the gold rush | the first flights | the moon landing | the Cold War | the fall of the
        Berlin Wall | the spread of paper | the history of chess | the history of tea | the history of coffee |
        the spice trade | early maps | medieval guilds | castles and sieges | the telegraph | early photography |
        silent films | the invention of zero | calendars through the ages | the Olympic Games | lighthouses |
        canals | the postal service | old measures and weights | the first computers | whaling | explorers of the
        poles | the discovery of penicillin | the great fire of London | the Great Depression"""),
    "everyday": split("""
        moving to a new flat | learning to cook | saving money | planning a budget | writing a CV | job interviews |
        asking for a raise | making friends in a new city | getting up early | sleeping better | drinking enough
        water | starting to run | stretching at a desk | packing for a trip | travelling with children | adopting
        a dog | keeping a cat indoors | growing tomatoes | balcony plants | composting | cleaning a kitchen |
        sorting laundry | mending clothes | painting a room | fixing a dripping tap | choosing a bicycle |
        buying a used car | renting a flat | reading more books | keeping a diary | learning an instrument |
        learning a language | board games for families | birthday parties | a picnic in the park | camping in the
        rain | hosting dinner guests | baking bread | making soup from leftovers | shopping lists | meal plans |
        time management | procrastination | meditation | screen time | saying no politely | giving feedback |
        apologising well | dealing with noise from neighbours | working from home | studying for exams |
        public speaking | writing thank-you notes | choosing gifts | first aid at home | insurance | taxes"""),
    "nature": split("""
        bees | ants | owls | wolves | whales | sea turtles | octopuses | penguins | elephants | hedgehogs | bats |
        foxes | salmon | sharks | eagles | crows | butterflies | spiders | earthworms | frogs | oak trees | bamboo |
        cacti | mushrooms | moss | seaweed | orchids | sunflowers | deserts | rainforests | tundra | wetlands |
        rivers and their deltas | waterfalls | caves | mountains | islands | the deep sea | mangroves | savannas |
        thunderstorms | hurricanes | fog | frost | droughts | forest fires | seasons | the northern lights"""),
    "arts": split("""
        watercolour painting | oil painting | sculpture | pottery | weaving | calligraphy | photography | film
        editing | stage design | ballet | folk dance | jazz | opera | string quartets | drumming | choirs | the
        violin | the piano | guitars | film music | poetry and metre | haiku | sonnets | short stories | novels |
        detective fiction | science fiction | fairy tales | myths | comics | children's books | biographies |
        architecture | gardens as art | mosaics | stained glass | origami | street art | museums | fashion design |
        typography | puppet theatre | stand-up comedy | radio plays | translation as an art | cooking as an art"""),
    "society": split("""
        elections | how laws are made | juries | human rights | free speech | trade unions | minimum wages |
        inflation | interest rates | supply and demand | stock markets | pensions | public transport | cycling
        in cities | affordable housing | schools and homework | school uniforms | universities | libraries |
        newspapers | advertising | social media | privacy online | volunteering | charities | immigration |
        tourism and cities | farming and subsidies | organic food | plastic waste | recycling | water supply |
        renewable energy | nuclear power | zoos | hunting | team sports | marathons | chess clubs | museums for
        children | remote work | four-day weeks | parental leave | care for the old | public parks | street lights"""),
}
ALL_TOPICS = [topic for topics in TOPICS.values() for topic in topics]

NAMES = split("""Amina | Bruno | Chiara | Dmitri | Elif | Farid | Greta | Hiroshi | Ines | Jonas | Kofi | Leila | Mateo |
    Nadia | Oskar | Priya | Quentin | Rosa | Samir | Tove | Umar | Vera | Wanda | Xavier | Yuki | Zofia | Anton |
    Beatriz | Carlos | Dana | Emil | Fatima | Gustav | Hana | Ivan | Julia | Kamal | Lucia | Mehmet | Nora |
    Olga | Pablo | Ravi | Sofia | Tomas | Ulla | Viktor | Wen | Yasmin | Zoltan | Abel | Bianca | Cem | Daria""")
SURNAMES = split("""Almeida | Bergström | Costa | Dubois | Eriksen | Fischer | Garcia | Haddad | Ivanova | Jansen | Kowalski |
    Lindqvist | Moreau | Nakamura | Okafor | Petrov | Quispe | Rossi | Schneider | Tanaka | Ueda | Vargas | Weber |
    Yilmaz | Zhang | Achebe | Brandt | Conti | Demir | Farkas | Gupta | Horvat | Iqbal | Keller | Lopez | Mensah""")
CITIES = split("""Lisbon | Oslo | Kyoto | Accra | Lima | Tallinn | Valencia | Gdansk | Montreal | Nairobi | Bergen | Porto |
    Hanoi | Izmir | Cusco | Dublin | Ghent | Zagreb | Tunis | Malmö | Seville | Kraków | Trieste | Osaka | Dakar |
    Riga | Quito | Leipzig | Turin | Galway | Utrecht | Bilbao | Sofia | Jaipur | Adelaide | Halifax | Rotterdam |
    Salzburg | Marseille | Reykjavik | Wellington | Windhoek | Mendoza | Basel | Brno | Aarhus | Naples | Busan""")
JOBS = split("""nurse | teacher | baker | plumber | software engineer | farmer | librarian | bus driver | architect |
    translator | electrician | chef | journalist | accountant | carpenter | vet | pharmacist | photographer | pilot |
    gardener | tailor | lawyer | social worker | mechanic | musician | geologist | firefighter | tour guide |
    hairdresser | dentist | sound engineer | museum guard | beekeeper | fisherman | marine biologist | optician""")
ANIMALS = split("""fox | owl | badger | heron | otter | hedgehog | raven | goat | donkey | lynx | sparrow | tortoise | seal |
    squirrel | crab | swan | mole | stork | bear cub | ladybird | gecko | moose | parrot | snail | whale | mouse""")
FOODS = split("""apples | lentils | rice | noodles | potatoes | carrots | chickpeas | eggs | mushrooms | spinach | tomatoes |
    pumpkin | salmon | chicken | tofu | cheese | yoghurt | oats | bread | beans | courgettes | leeks | cabbage |
    peppers | aubergines | pears | cherries | walnuts | honey | lemons | ginger | cinnamon | cocoa | barley""")
OBJECTS = split("""lantern | compass | umbrella | teapot | violin | map | pocket watch | ladder | typewriter | suitcase |
    key | mirror | kite | rowing boat | bicycle | telescope | chessboard | scarf | bell | letter | notebook | lamp |
    camera | backpack | stove | carpet | armchair | clock | basket | candle | radio | thermos | raincoat | tent |
    drum | paintbrush | globe | coin | ring | hammock | snow globe | music box | jar of buttons | wooden horse""")
PRODUCTS = split("""desk lamp | water bottle | rain jacket | coffee grinder | hiking boots | wireless mouse | bike lock |
    frying pan | yoga mat | baby monitor | air purifier | electric kettle | sleeping bag | garden hose | headphones |
    standing desk | hand blender | wool blanket | bird feeder | board game | travel pillow | reading light |
    tool box | bread maker | kitchen scale | folding chair | phone stand | soap dispenser | cargo bike | telescope""")
AUDIENCES = split("""a ten-year-old | a beginner | a curious teenager | a busy manager | a university student | my grandmother |
    somebody who has never heard of it | a class of pupils | a sceptical friend | a new colleague | a tourist |
    an engineer from another field | a small child at bedtime | a journalist on a deadline | a shop owner""")
TONES = split("""friendly | formal | cheerful | dry and factual | encouraging | poetic | playful | calm | persuasive | sober |
    humorous | warm | neutral | enthusiastic | modest""")
MOODS = split("""hopeful | melancholy | tense | funny | gentle | eerie | nostalgic | lively | dreamy | ironic""")
PLACES = split("""an old lighthouse | a night train | a village bakery | a flooded library | a mountain hut | a fish market |
    an empty theatre | a space station | a railway bridge | a desert camp | a greenhouse | a hospital corridor |
    a harbour in winter | a school attic | a ferry in the fog | a city rooftop | a clockmaker's shop | a salt mine |
    an island without a name | a museum after closing time | a bus stop in the rain | a windmill | a busy kitchen""")
LENGTHS = split("""in two sentences | in three sentences | in one paragraph | in two short paragraphs | in about 100 words |
    in about 150 words | in five bullet points | as a short list | in simple words | step by step | in at most
    80 words | with one example | with two examples | briefly | in detail""")
MONTHS = split("""January | February | March | April | May | June | July | August | September | October | November |
    December""")
DAYS = split("Monday | Tuesday | Wednesday | Thursday | Friday | Saturday | Sunday")
ADJECTIVES = split("""quiet | broken | golden | forgotten | enormous | tiny | stubborn | clever | shy | rusty | bright |
    patient | lonely | wild | careful | strange | brave | sleepy | honest | hungry | curious | silver""")
GENRES = split("""fable | ghost story | love story | detective story | adventure | fairy tale | science-fiction scene | diary
    entry | monologue | dialogue | letter | news report | legend | comedy sketch | travel story""")
