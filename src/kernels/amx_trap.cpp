#include "kernels/amx_trap.h"

#include <csignal>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) && defined(__linux__)
#include <ucontext.h>
#include <unistd.h>

#include "kernels/reference.h"

namespace paceline {
namespace {

// The state of one thread, plain data.
struct TileState {
  bool configured;
  uint16_t row_bytes[8];
  uint8_t rows[8];
  uint8_t data[8][16][64];
  int64_t answered;
};
thread_local TileState state;

[[noreturn]] void die(const char* why) {
  [[maybe_unused]] const auto ignored = write(2, why, std::strlen(why));
  std::abort();
}

uint64_t general_register(const greg_t* registers, int number) {
  constexpr int kPlaces[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                               REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                               REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(registers[kPlaces[number]]);
}

// One instruction behind a three-byte VEX prefix, decoded.
struct Instruction {
  int length = 0;
  int prefix = 0;  // 0 none, 2 F3, 3 F2
  int opcode = 0;
  int reg = 0;   // of ModRM
  int rm = 0;    // of ModRM
  int vvvv = 0;  // the third operand
  bool has_memory = false;
  uint64_t address = 0;  // base and displacement
  uint64_t stride = 0;   // index, scaled
};

// False for anything that is no such instruction of map 0F38 with W and L clear.
bool decode(const uint8_t* p, const greg_t* registers, Instruction* out) {
  if (p[0] != 0xc4 || (p[1] & 0x1f) != 2 || (p[2] & 0x84) != 0) return false;
  const int index_high = (p[1] & 0x40) != 0 ? 0 : 8;
  const int base_high = (p[1] & 0x20) != 0 ? 0 : 8;
  out->prefix = p[2] & 3;
  out->vvvv = ~(p[2] >> 3) & 15;
  out->opcode = p[3];
  const int mod = p[4] >> 6;
  out->reg = (p[4] >> 3) & 7;
  out->rm = p[4] & 7;
  const uint8_t* next = p + 5;
  out->has_memory = mod != 3;
  if (mod != 3) {
    int base = out->rm + base_high;
    bool has_base = true;
    if (out->rm == 4) {  // a SIB byte
      const int sib = *next++;
      const int index = ((sib >> 3) & 7) + index_high;
      if (index != 4) out->stride = general_register(registers, index) << (sib >> 6);
      base = (sib & 7) + base_high;
      has_base = !(mod == 0 && (sib & 7) == 5);
    } else if (mod == 0 && out->rm == 5) {
      die("an AMX instruction with an address relative to itself\n");
    }
    int64_t displacement = 0;
    if (mod == 1) {
      displacement = *next++;
      if (displacement > 127) displacement -= 256;
    } else if (mod == 2 || !has_base) {
      int32_t wide;
      std::memcpy(&wide, next, 4);
      displacement = wide;
      next += 4;
    }
    out->address = (has_base ? general_register(registers, base) : 0) + displacement;
  }
  out->length = static_cast<int>(next - p);
  return true;
}

void configure(const uint8_t* config) {
  if (config[0] != 1) die("LDTILECFG: not palette 1\n");
  for (int i = 1; i < 16; ++i)
    if (config[i] != 0) die("LDTILECFG: reserved bytes are set\n");
  std::memset(state.data, 0, sizeof(state.data));
  std::memcpy(state.row_bytes, config + 16, sizeof(state.row_bytes));
  std::memcpy(state.rows, config + 48, sizeof(state.rows));
  for (int t = 0; t < 8; ++t) {
    if (state.rows[t] > 16 || state.row_bytes[t] > 64 || state.row_bytes[t] % 4 != 0 ||
        (state.rows[t] == 0) != (state.row_bytes[t] == 0))
      die("LDTILECFG: a tile of impossible size\n");
  }
  for (int i = 32; i < 48; ++i)
    if (config[i] != 0) die("LDTILECFG: more than eight tiles\n");
  for (int i = 56; i < 64; ++i)
    if (config[i] != 0) die("LDTILECFG: more than eight tiles\n");
  state.configured = true;
}

void want_configured(int tile) {
  if (!state.configured || tile >= 8 || state.rows[tile] == 0)
    die("an AMX instruction on a tile that is not configured\n");
}

void move(const Instruction& in, bool load) {
  want_configured(in.reg);
  if (load) std::memset(state.data[in.reg], 0, sizeof(state.data[in.reg]));
  for (int row = 0; row < state.rows[in.reg]; ++row) {
    // The kernel's own memory, at an address that its registers hold.
    auto* memory = reinterpret_cast<uint8_t*>(in.address + static_cast<uint64_t>(row) * in.stride);
    if (load)
      std::memcpy(state.data[in.reg][row], memory, state.row_bytes[in.reg]);
    else
      std::memcpy(memory, state.data[in.reg][row], state.row_bytes[in.reg]);
  }
}

void multiply(const Instruction& in, bool floats) {
  const int c = in.reg;
  const int a = in.rm;
  const int b = in.vvvv;
  want_configured(c);
  want_configured(a);
  want_configured(b);
  if (c == a || c == b || a == b || state.row_bytes[c] != state.row_bytes[b] ||
      state.rows[c] != state.rows[a] || state.row_bytes[a] / 4 != state.rows[b])
    die("a product of AMX tiles whose sizes do not fit\n");
  for (int m = 0; m < state.rows[c]; ++m) {
    for (int n = 0; n < state.row_bytes[c] / 4; ++n) {
      uint8_t* sum = state.data[c][m] + 4 * n;
      if (floats) {
        bf16 left[32];
        bf16 right[32];
        for (int k = 0; k < state.rows[b]; ++k) {
          std::memcpy(left + 2 * k, state.data[a][m] + 4 * k, 4);
          std::memcpy(right + 2 * k, state.data[b][k] + 4 * n, 4);
        }
        const auto size = static_cast<size_t>(2 * state.rows[b]);
        float value;
        std::memcpy(&value, sum, 4);
        value = reference::add_pairs({left, size}, {right, size}, value);
        std::memcpy(sum, &value, 4);
      } else {
        int32_t value;
        std::memcpy(&value, sum, 4);
        for (int k = 0; k < 4 * state.rows[b]; ++k)
          value += static_cast<int8_t>(state.data[a][m][k]) *
                   static_cast<int8_t>(state.data[b][k / 4][4 * n + k % 4]);
        std::memcpy(sum, &value, 4);
      }
    }
  }
}

bool answer(const uint8_t* at, const greg_t* registers, int* length) {
  Instruction in;
  if (!decode(at, registers, &in)) return false;
  constexpr int kF3 = 2;
  constexpr int kF2 = 3;
  if (in.opcode == 0x49 && in.prefix == 0 && in.has_memory) {
    configure(reinterpret_cast<const uint8_t*>(in.address));  // LDTILECFG
  } else if (in.opcode == 0x49 && in.prefix == 0 && in.reg == 0 && in.rm == 0) {
    state.configured = false;  // TILERELEASE
  } else if (in.opcode == 0x49 && in.prefix == kF2 && !in.has_memory) {
    want_configured(in.reg);  // TILEZERO
    std::memset(state.data[in.reg], 0, sizeof(state.data[in.reg]));
  } else if (in.opcode == 0x4b && in.has_memory && (in.prefix == kF2 || in.prefix == kF3)) {
    move(in, in.prefix == kF2);  // TILELOADD, TILESTORED
  } else if (in.opcode == 0x5c && in.prefix == kF3 && !in.has_memory) {
    multiply(in, true);  // TDPBF16PS
  } else if (in.opcode == 0x5e && in.prefix == kF2 && !in.has_memory) {
    multiply(in, false);  // TDPBSSD
  } else {
    return false;
  }
  *length = in.length;
  return true;
}

void on_illegal_instruction(int signal, siginfo_t*, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  int length = 0;
  if (!answer(reinterpret_cast<const uint8_t*>(registers[REG_RIP]), registers, &length)) {
    std::signal(signal, SIG_DFL);  // raised again on return
    return;
  }
  registers[REG_RIP] += length;
  ++state.answered;
}

}  // namespace

void answer_amx_traps() {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_illegal_instruction;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGILL, &action, nullptr) == 0;
  }();
  if (!installed) die("no handler for SIGILL could be installed\n");
}

int64_t amx_traps_answered() { return state.answered; }
bool amx_tiles_are_configured() { return state.configured; }

}  // namespace paceline

#else

namespace paceline {

void answer_amx_traps() {}
int64_t amx_traps_answered() { return 0; }
bool amx_tiles_are_configured() { return false; }

}  // namespace paceline

#endif
