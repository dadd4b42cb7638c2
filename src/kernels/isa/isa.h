// Which instruction set a file under kernels/isa is being compiled for. CMake defines PACELINE_ISA,
// the namespace, for each copy; what the compiler was allowed to use decides the lanes.
#pragma once

#if !defined(PACELINE_ISA)
#error "compile this file through kernels/CMakeLists.txt, which names the instruction set"
#endif

#if defined(PACELINE_EMULATE_AVX512)
#define PACELINE_LANES_AVX512
#if defined(PACELINE_EMULATE_VNNI)
#define PACELINE_LANES_VNNI
#endif
#elif defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define PACELINE_LANES_AVX512
#if defined(__AVX512VNNI__)
#define PACELINE_LANES_VNNI
#endif
#elif defined(__AVX2__) && defined(__FMA__)
#define PACELINE_LANES_AVX2
#endif
