// Registers of all routines: R8 is the key, with powers of H from H^36 down to H, the round keys behind them; DI, SI and CX
// say where the rest of the text goes, where it is, and how long it is.
//
// Z16 to Z30 are the round keys, Z31 the next four counter blocks, Z15 what turns the bytes of blocks around, X14 the
// first counter block, encrypted. Z0 to Z7 are encrypted at a time. Z8, Z9, Z10 are the sum of the products of the hash:
// their low, middle and high terms; X8 is the hash, once that is reduced. Z11 to Z13 are anybody's.
//
// Blocks are hashed turned around, so that bit i of a register is the factor of x^(127-i). Then a product lacks a factor x,
// which the powers have too many, and it is reduced from below, which divides by x^128: modulo x^128+x^127+x^126+x^121+1.

#define POWERS 576 // bytes of them

DATA turned<>+0(SB)/8, $0x08090a0b0c0d0e0f
DATA turned<>+8(SB)/8, $0x0001020304050607
GLOBL turned<>(SB), RODATA|NOPTR, $16

// What the first four counter blocks of a text are above the one before.
DATA first<>+0(SB)/8, $1
DATA first<>+8(SB)/8, $0
DATA first<>+16(SB)/8, $2
DATA first<>+24(SB)/8, $0
DATA first<>+32(SB)/8, $3
DATA first<>+40(SB)/8, $0
DATA first<>+48(SB)/8, $4
DATA first<>+56(SB)/8, $0
GLOBL first<>(SB), RODATA|NOPTR, $64

DATA four<>+0(SB)/8, $4
DATA four<>+8(SB)/8, $0
DATA four<>+16(SB)/8, $4
DATA four<>+24(SB)/8, $0
DATA four<>+32(SB)/8, $4
DATA four<>+40(SB)/8, $0
DATA four<>+48(SB)/8, $4
DATA four<>+56(SB)/8, $0
GLOBL four<>(SB), RODATA|NOPTR, $64

// x^127+x^126+x^121, divided by x^64, for each block.
DATA poly<>+0(SB)/8, $0xc200000000000000
DATA poly<>+8(SB)/8, $0
DATA poly<>+16(SB)/8, $0xc200000000000000
DATA poly<>+24(SB)/8, $0
DATA poly<>+32(SB)/8, $0xc200000000000000
DATA poly<>+40(SB)/8, $0
DATA poly<>+48(SB)/8, $0xc200000000000000
DATA poly<>+56(SB)/8, $0
GLOBL poly<>(SB), RODATA|NOPTR, $64

// FIRST hashes the blocks in Z11, the first of many, as they are times the powers in Z12, and the hash before with them.
#define FIRST \
	VPXORQ Z8, Z11, Z11; \
	VPCLMULQDQ $0x00, Z12, Z11, Z8; \
	VPCLMULQDQ $0x11, Z12, Z11, Z10; \
	VPCLMULQDQ $0x01, Z12, Z11, Z9; \
	VPCLMULQDQ $0x10, Z12, Z11, Z11; \
	VPXORQ Z11, Z9, Z9

// NEXT hashes further ones.
#define NEXT \
	VPCLMULQDQ $0x00, Z12, Z11, Z13; \
	VPXORQ Z13, Z8, Z8; \
	VPCLMULQDQ $0x11, Z12, Z11, Z13; \
	VPXORQ Z13, Z10, Z10; \
	VPCLMULQDQ $0x01, Z12, Z11, Z13; \
	VPCLMULQDQ $0x10, Z12, Z11, Z11; \
	VPTERNLOGQ $0x96, Z13, Z11, Z9

// LOAD takes four blocks and their powers from memory, LOADK the bytes of which the mask says that they are there, and touches no
// other; TAKE takes them from a register.
#define LOAD(blocks, powers) \
	VMOVDQU64 blocks, Z11; \
	VMOVDQU64 powers, Z12; \
	VPSHUFB Z15, Z11, Z11
#define LOADK(blocks, k, powers) \
	VMOVDQU8.Z blocks, k, Z11; \
	VMOVDQU64 powers, Z12; \
	VPSHUFB Z15, Z11, Z11
#define TAKE(z, powers) \
	VMOVDQU64 powers, Z12; \
	VPSHUFB Z15, z, Z11

// REDUCE makes a hash of the sum.
#define REDUCE \
	VPCLMULQDQ $0x00, poly<>(SB), Z8, Z11; \
	VPSHUFD $0x4e, Z8, Z8; \
	VPTERNLOGQ $0x96, Z11, Z9, Z8; \
	VPCLMULQDQ $0x00, poly<>(SB), Z8, Z11; \
	VPSHUFD $0x4e, Z8, Z8; \
	VPTERNLOGQ $0x96, Z11, Z10, Z8; \
	VEXTRACTI64X4 $1, Z8, Y11; \
	VPXOR Y11, Y8, Y8; \
	VEXTRACTI128 $1, Y8, X11; \
	VPXOR X11, X8, X8

// COUNT makes the next four counter blocks, and does round 0.
#define COUNT(z) \
	VPSHUFB Z15, Z31, z; \
	VPADDD four<>(SB), Z31, Z31; \
	VPXORQ Z16, z, z
#define COUNT4 COUNT(Z0); COUNT(Z1); COUNT(Z2); COUNT(Z3)
#define COUNT8 COUNT4; COUNT(Z4); COUNT(Z5); COUNT(Z6); COUNT(Z7)

#define ROUND4(k) \
	VAESENC k, Z0, Z0; \
	VAESENC k, Z1, Z1; \
	VAESENC k, Z2, Z2; \
	VAESENC k, Z3, Z3
#define ROUND8(k) \
	ROUND4(k); \
	VAESENC k, Z4, Z4; \
	VAESENC k, Z5, Z5; \
	VAESENC k, Z6, Z6; \
	VAESENC k, Z7, Z7
#define LAST4 \
	VAESENCLAST Z30, Z0, Z0; \
	VAESENCLAST Z30, Z1, Z1; \
	VAESENCLAST Z30, Z2, Z2; \
	VAESENCLAST Z30, Z3, Z3
#define LAST8 \
	LAST4; \
	VAESENCLAST Z30, Z4, Z4; \
	VAESENCLAST Z30, Z5, Z5; \
	VAESENCLAST Z30, Z6, Z6; \
	VAESENCLAST Z30, Z7, Z7
#define ROUNDS4 \
	ROUND4(Z17); \
	ROUND4(Z18); \
	ROUND4(Z19); \
	ROUND4(Z20); \
	ROUND4(Z21); \
	ROUND4(Z22); \
	ROUND4(Z23); \
	ROUND4(Z24); \
	ROUND4(Z25); \
	ROUND4(Z26); \
	ROUND4(Z27); \
	ROUND4(Z28); \
	ROUND4(Z29); \
	LAST4
#define ROUNDS8 \
	ROUND8(Z17); \
	ROUND8(Z18); \
	ROUND8(Z19); \
	ROUND8(Z20); \
	ROUND8(Z21); \
	ROUND8(Z22); \
	ROUND8(Z23); \
	ROUND8(Z24); \
	ROUND8(Z25); \
	ROUND8(Z26); \
	ROUND8(Z27); \
	ROUND8(Z28); \
	ROUND8(Z29); \
	LAST8

// TEXT4 encrypts or decrypts the first 256 bytes, TEXT8 512.
#define TEXT4 \
	VPXORQ (SI), Z0, Z0; \
	VPXORQ 64(SI), Z1, Z1; \
	VPXORQ 128(SI), Z2, Z2; \
	VPXORQ 192(SI), Z3, Z3; \
	VMOVDQU64 Z0, (DI); \
	VMOVDQU64 Z1, 64(DI); \
	VMOVDQU64 Z2, 128(DI); \
	VMOVDQU64 Z3, 192(DI)
#define TEXT8 \
	VPXORQ 256(SI), Z4, Z4; \
	VPXORQ 320(SI), Z5, Z5; \
	VPXORQ 384(SI), Z6, Z6; \
	VPXORQ 448(SI), Z7, Z7; \
	TEXT4; \
	VMOVDQU64 Z4, 256(DI); \
	VMOVDQU64 Z5, 320(DI); \
	VMOVDQU64 Z6, 384(DI); \
	VMOVDQU64 Z7, 448(DI)

// SEALK encrypts the bytes of which the mask says that they are there, and makes the others of the register zero. OPENK decrypts
// them. Neither touches other memory.
#define SEALK(at, k, z) \
	VMOVDQU8.Z at(SI), k, Z11; \
	VPXORQ Z11, z, z; \
	VMOVDQU8.Z z, k, z; \
	VMOVDQU8 z, k, at(DI)
#define OPENK(at, k, z) \
	VMOVDQU8.Z at(SI), k, Z11; \
	VPXORQ Z11, z, z; \
	VMOVDQU8 z, k, at(DI)

// MASKS makes of AX, at most 256, which of so many bytes are there: K1 for the first 64, and so on.
#define MASKS \
	MOVQ $-1, R9; \
	XORL R11, R11; \
	MOVL $64, R12; \
	MOVQ AX, R10; \
	CMPQ AX, R12; \
	CMOVQHI R12, R10; \
	BZHIQ R10, R9, R10; \
	KMOVQ R10, K1; \
	SUBQ R12, AX; \
	CMOVQLT R11, AX; \
	BZHIQ AX, R9, R10; \
	KMOVQ R10, K2; \
	SUBQ R12, AX; \
	CMOVQLT R11, AX; \
	BZHIQ AX, R9, R10; \
	KMOVQ R10, K3; \
	SUBQ R12, AX; \
	CMOVQLT R11, AX; \
	BZHIQ AX, R9, R10; \
	KMOVQ R10, K4

// BEHIND has R13 point to the power of the first block of the last CX bytes: behind these comes the one with the lengths.
#define BEHIND \
	LEAQ 15(CX), R13; \
	ANDQ $-16, R13; \
	NEGQ R13; \
	LEAQ (POWERS-16)(R8)(R13*1), R13

// BEGIN loads the keys at R8, and makes the counters of the nonce at AX.
#define BEGIN \
	VBROADCASTI32X4 turned<>(SB), Z15; \
	VBROADCASTI32X4 (POWERS+0)(R8), Z16; \
	VBROADCASTI32X4 (POWERS+16)(R8), Z17; \
	VBROADCASTI32X4 (POWERS+32)(R8), Z18; \
	VBROADCASTI32X4 (POWERS+48)(R8), Z19; \
	VBROADCASTI32X4 (POWERS+64)(R8), Z20; \
	VBROADCASTI32X4 (POWERS+80)(R8), Z21; \
	VBROADCASTI32X4 (POWERS+96)(R8), Z22; \
	VBROADCASTI32X4 (POWERS+112)(R8), Z23; \
	VBROADCASTI32X4 (POWERS+128)(R8), Z24; \
	VBROADCASTI32X4 (POWERS+144)(R8), Z25; \
	VBROADCASTI32X4 (POWERS+160)(R8), Z26; \
	VBROADCASTI32X4 (POWERS+176)(R8), Z27; \
	VBROADCASTI32X4 (POWERS+192)(R8), Z28; \
	VBROADCASTI32X4 (POWERS+208)(R8), Z29; \
	VBROADCASTI32X4 (POWERS+224)(R8), Z30; \
	MOVQ (AX), R9; \
	MOVL 8(AX), R10; \
	BTSQ $56, R10; \
	VMOVQ R9, X14; \
	VPINSRQ $1, R10, X14, X14; \
	VPSHUFB X15, X14, X11; \
	VSHUFI64X2 $0, Z11, Z11, Z31; \
	VPADDD first<>(SB), Z31, Z31; \
	VPXORQ X16, X14, X14; \
	VAESENC X17, X14, X14; \
	VAESENC X18, X14, X14; \
	VAESENC X19, X14, X14; \
	VAESENC X20, X14, X14; \
	VAESENC X21, X14, X14; \
	VAESENC X22, X14, X14; \
	VAESENC X23, X14, X14; \
	VAESENC X24, X14, X14; \
	VAESENC X25, X14, X14; \
	VAESENC X26, X14, X14; \
	VAESENC X27, X14, X14; \
	VAESENC X28, X14, X14; \
	VAESENC X29, X14, X14; \
	VAESENCLAST X30, X14, X14

// AUTHENTICATE hashes the BX bytes at DX that are not encrypted.
#define AUTHENTICATE \
	VPXOR X8, X8, X8; \
data: \
	CMPQ BX, $64; \
	JBE dataEnds; \
	LOAD((DX), (POWERS-64)(R8)); \
	FIRST; \
	REDUCE; \
	ADDQ $64, DX; \
	SUBQ $64, BX; \
	JMP data; \
dataEnds: \
	TESTQ BX, BX; \
	JZ dataHashed; \
	MOVQ $-1, R9; \
	BZHIQ BX, R9, R9; \
	KMOVQ R9, K1; \
	ADDQ $15, BX; \
	ANDQ $-16, BX; \
	NEGQ BX; \
	LOADK((DX), K1, POWERS(R8)(BX*1)); \
	FIRST; \
	REDUCE; \
dataHashed:

// LENGTHS hashes the last block: AX bytes of data that is authenticated only, R10 of text.
#define LENGTHS \
	SHLQ $3, R10; \
	SHLQ $3, AX; \
	VMOVQ R10, X11; \
	VPINSRQ $1, AX, X11, X11; \
	VMOVDQU (POWERS-16)(R8), X12; \
	NEXT

// TAG makes X8 the tag.
#define TAG \
	REDUCE; \
	VPSHUFB X15, X8, X8; \
	VPXOR X14, X8, X8

// END leaves no key behind, nor what is as good as one.
#define END \
	VPXORQ X16, X16, X16; \
	VPXORQ X17, X17, X17; \
	VPXORQ X18, X18, X18; \
	VPXORQ X19, X19, X19; \
	VPXORQ X20, X20, X20; \
	VPXORQ X21, X21, X21; \
	VPXORQ X22, X22, X22; \
	VPXORQ X23, X23, X23; \
	VPXORQ X24, X24, X24; \
	VPXORQ X25, X25, X25; \
	VPXORQ X26, X26, X26; \
	VPXORQ X27, X27, X27; \
	VPXORQ X28, X28, X28; \
	VPXORQ X29, X29, X29; \
	VPXORQ X30, X30, X30; \
	VPXORQ X31, X31, X31; \
	VZEROALL
