//go:build !purego && !race

#include "textflag.h"

// A CRC's register is a polynomial modulo P, the highest power in the lowest bit. In this form the product of a and c << 1 by PCLMULQDQ is
// a * c * x^32, if a has 64 bits and c has 32. TestFoldConstants computes each constant again; foldTable's are computed.

// Multiplies 32 bits by x^96: x^64 mod P.
DATA halve<>+0(SB)/8, $0x163cd6124
DATA halve<>+8(SB)/8, $0
GLOBL halve<>(SB), RODATA|NOPTR, $16

// Barrett reduction: P, and x^64 divided by P.
DATA reduce<>+0(SB)/8, $0x1db710641
DATA reduce<>+8(SB)/8, $0x1f7011641
GLOBL reduce<>(SB), RODATA|NOPTR, $16

DATA low32<>+0(SB)/8, $0x00000000ffffffff
DATA low32<>+8(SB)/8, $0
GLOBL low32<>(SB), RODATA|NOPTR, $16

// The 16 octets at k of each: PSHUFB's selection of the first k octets as the last ones, and four octets 0xFF before those.
DATA shift<>+0(SB)/8, $0x8080808080808080
DATA shift<>+8(SB)/8, $0x8080808080808080
DATA shift<>+16(SB)/8, $0x0706050403020100
DATA shift<>+24(SB)/8, $0x0f0e0d0c0b0a0908
GLOBL shift<>(SB), RODATA|NOPTR, $32
DATA before<>+0(SB)/8, $0
DATA before<>+8(SB)/8, $0xffffffff00000000
DATA before<>+16(SB)/8, $0
DATA before<>+24(SB)/8, $0
GLOBL before<>(SB), RODATA|NOPTR, $32

// func putFoldedCRC(b *byte, n int)
//
// The register starts as ones, so the first four of the eight octets 0xFF make it zero, and the message begins with the other four. Zeros
// before a message don't count, so they fill the first block of 16 octets. Each block is multiplied by x to the number of bits behind it: no
// multiplication waits for another one.
TEXT ·putFoldedCRC(SB), NOSPLIT, $0-16
	MOVQ  b+0(FP), SI
	MOVQ  n+8(FP), CX
	LEAQ  ·foldTable(SB), R8
	LEAQ  shift<>(SB), DX
	LEAQ  before<>(SB), DI
	MOVL  CX, AX
	ANDL  $15, AX // octets in the first block: 0, 4, 8 or 12
	MOVOU (SI), X3
	MOVOU (DX)(AX*1), X2
	MOVOU (DI)(AX*1), X1
	PSHUFB X2, X3
	PXOR  X1, X3
	PXOR  X1, X1
	ADDQ  AX, SI
	SUBQ  AX, CX

block:
	MOVOU -16(R8)(CX*1), X0
	MOVOA X3, X2
	PCLMULQDQ $0x00, X0, X2
	PCLMULQDQ $0x11, X0, X3
	PXOR  X2, X1
	PXOR  X3, X1
	MOVOU (SI), X3
	ADDQ  $16, SI
	SUBQ  $16, CX
	JNE   block
	PXOR  X3, X1

	// 128 bits to 96: the first eight octets times x^96, and the others below. X0 has the constants of one block.
	PCLMULQDQ $0x01, X1, X0
	PSRLDQ $8, X1
	PXOR  X0, X1

	// 96 bits to 64, which are the register times x^32.
	MOVOU low32<>(SB), X4
	MOVOU halve<>(SB), X0
	MOVOA X1, X2
	PSRLDQ $4, X2
	PAND  X4, X1
	PCLMULQDQ $0x00, X0, X1
	PXOR  X2, X1

	// 64 bits to 32: the remainder of the division by P.
	MOVOU reduce<>(SB), X0
	MOVOA X1, X2
	PAND  X4, X1
	PCLMULQDQ $0x10, X0, X1
	PAND  X4, X1
	PCLMULQDQ $0x00, X0, X1
	PXOR  X2, X1
	MOVQ  X1, AX
	SHRQ  $32, AX
	NOTL  AX
	MOVL  AX, (SI)
	RET
