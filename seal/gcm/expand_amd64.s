#include "textflag.h"
#include "gcm_amd64.h"

// TIMES makes x be the product of x and y, both turned around and with a factor x too many; t, u and v are anybody's.
#define TIMES(y, x, t, u, v) \
	VPCLMULQDQ $0x00, y, x, t; \
	VPCLMULQDQ $0x01, y, x, u; \
	VPCLMULQDQ $0x10, y, x, v; \
	VPXORQ v, u, u; \
	VPCLMULQDQ $0x11, y, x, x; \
	VPCLMULQDQ $0x00, poly<>(SB), t, v; \
	VPSHUFD $0x4e, t, t; \
	VPTERNLOGQ $0x96, v, u, t; \
	VPCLMULQDQ $0x00, poly<>(SB), t, v; \
	VPSHUFD $0x4e, t, t; \
	VPTERNLOGQ $0x96, v, t, x

// What x^128 is.
DATA wraps<>+0(SB)/8, $1
DATA wraps<>+8(SB)/8, $0xc200000000000000
GLOBL wraps<>(SB), RODATA|NOPTR, $16

// The last word of a round key in all four, its bytes rotated.
DATA rotated<>+0(SB)/8, $0x0c0f0e0d0c0f0e0d
DATA rotated<>+8(SB)/8, $0x0c0f0e0d0c0f0e0d
GLOBL rotated<>(SB), RODATA|NOPTR, $16

// SPREAD adds to each word of a those before it, and X2.
#define SPREAD(a) \
	VPSLLDQ $4, a, X3; \
	VPXOR X3, a, a; \
	VPSLLDQ $8, a, X3; \
	VPXOR X3, a, a; \
	VPXOR X2, a, a

// EVEN and ODD make the next round key of the two before, a the older one, and do its round of X4. The last round of AES on four
// equal columns is the substitution alone.
#define EVEN(a, b, at) \
	VPSHUFB X15, b, X2; \
	VAESENCLAST X14, X2, X2; \
	VPSLLD $1, X14, X14; \
	SPREAD(a); \
	VMOVDQU a, (POWERS+at)(R8); \
	VAESENC a, X4, X4
#define ODD(a, b, at) \
	VPSHUFD $0xff, b, X2; \
	VAESENCLAST X13, X2, X2; \
	SPREAD(a); \
	VMOVDQU a, (POWERS+at)(R8); \
	VAESENC a, X4, X4

// func expand(k *key, secret *[32]byte)
TEXT ·expand(SB), NOSPLIT, $0-16
	MOVQ k+0(FP), R8
	MOVQ secret+8(FP), AX
	VMOVDQU rotated<>(SB), X15
	VPXOR X13, X13, X13
	MOVL $1, CX
	VMOVD CX, X14
	VPBROADCASTD X14, X14
	VMOVDQU (AX), X0
	VMOVDQU 16(AX), X1
	VMOVDQU X0, (POWERS+0)(R8)
	VMOVDQU X1, (POWERS+16)(R8)
	VAESENC X1, X0, X4 // the zero block, of which H is made
	EVEN(X0, X1, 32)
	ODD(X1, X0, 48)
	EVEN(X0, X1, 64)
	ODD(X1, X0, 80)
	EVEN(X0, X1, 96)
	ODD(X1, X0, 112)
	EVEN(X0, X1, 128)
	ODD(X1, X0, 144)
	EVEN(X0, X1, 160)
	ODD(X1, X0, 176)
	EVEN(X0, X1, 192)
	ODD(X1, X0, 208)
	VPSHUFB X15, X1, X2
	VAESENCLAST X14, X2, X2
	SPREAD(X0)
	VMOVDQU X0, (POWERS+224)(R8)
	VAESENCLAST X0, X4, X4

	// H, times x.
	VPSHUFB turned<>(SB), X4, X4
	VPSRAD $31, X4, X0
	VPSHUFD $0xff, X0, X0
	VPAND wraps<>(SB), X0, X0
	VPSRLQ $63, X4, X1
	VPSLLDQ $8, X1, X1
	VPSLLQ $1, X4, X4
	VPTERNLOGQ $0x96, X0, X1, X4

	// H^1 to H^4, then four by four.
	VMOVDQU X4, (POWERS-16)(R8)
	VMOVDQA X4, X5
	TIMES(X4, X5, X0, X1, X2)
	VMOVDQU X5, (POWERS-32)(R8)
	TIMES(X4, X5, X0, X1, X2)
	VMOVDQU X5, (POWERS-48)(R8)
	TIMES(X4, X5, X0, X1, X2)
	VMOVDQU X5, (POWERS-64)(R8)
	VSHUFI64X2 $0, Z5, Z5, Z4
	VMOVDQU64 (POWERS-64)(R8), Z5
	MOVQ $(POWERS-128), CX

powers:
	TIMES(Z4, Z5, Z0, Z1, Z2)
	VMOVDQU64 Z5, (R8)(CX*1)
	SUBQ $64, CX
	JGE powers
	VZEROALL
	RET
