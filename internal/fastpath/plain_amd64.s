//go:build !purego && !race

#include "go_asm.h"
#include "textflag.h"

// The bits that all plain IPv4 packets have in common in the 16 bytes from the EtherType on, and their values: EtherType, version and header
// length, fragment offset and MF, protocol.
DATA ipv4Bits<>+0(SB)/8, $0x0000000000ffffff
DATA ipv4Bits<>+8(SB)/8, $0x00000000ff00ff3f
GLOBL ipv4Bits<>(SB), RODATA|NOPTR, $16
DATA ipv4Same<>+0(SB)/8, $0x0000000000450008
DATA ipv4Same<>+8(SB)/8, $0x0000000011000000
GLOBL ipv4Same<>(SB), RODATA|NOPTR, $16

// Orders of bytes: of the IPv4 source and destination address as the lower half of an Addr, and of both halves of an IPv6 address. 0x80 is a
// byte of zero.
DATA ipv4Src<>+0(SB)/8, $0x8080808080808080
DATA ipv4Src<>+8(SB)/8, $0x8080808000010203
GLOBL ipv4Src<>(SB), RODATA|NOPTR, $16
DATA ipv4Dst<>+0(SB)/8, $0x8080808080808080
DATA ipv4Dst<>+8(SB)/8, $0x8080808004050607
GLOBL ipv4Dst<>(SB), RODATA|NOPTR, $16
DATA ipv4Mapped<>+0(SB)/8, $0x0000000000000000
DATA ipv4Mapped<>+8(SB)/8, $0x0000ffff00000000
GLOBL ipv4Mapped<>(SB), RODATA|NOPTR, $16
DATA ipv6Halves<>+0(SB)/8, $0x0001020304050607
DATA ipv6Halves<>+8(SB)/8, $0x08090a0b0c0d0e0f
GLOBL ipv6Halves<>(SB), RODATA|NOPTR, $16

// The same of the destination QP as Record.Flow.QPs, in the 16 bytes up to the end of the BTH. For the last 16 bytes of a Record: the PSN and the
// opcode, in the same; the source port, in the 16 bytes from the UDP header on; the TOS, in those from the EtherType on.
DATA bthQP<>+0(SB)/8, $0x8080808080090a0b
DATA bthQP<>+8(SB)/8, $0x8080808080808080
GLOBL bthQP<>(SB), RODATA|NOPTR, $16
DATA bthRest<>+0(SB)/8, $0x80808080800d0e0f
DATA bthRest<>+8(SB)/8, $0x8080808080048080
GLOBL bthRest<>(SB), RODATA|NOPTR, $16
DATA udpRest<>+0(SB)/8, $0x8080808080808080
DATA udpRest<>+8(SB)/8, $0x8080808080800001
GLOBL udpRest<>(SB), RODATA|NOPTR, $16
DATA ipRest<>+0(SB)/8, $0x8080808080808080
DATA ipRest<>+8(SB)/8, $0x8080808003808080
GLOBL ipRest<>(SB), RODATA|NOPTR, $16

// EtherTypes as little-endian numbers, and the UDP port ahead of a length, as a number in host byte order.
#define IPV6 0xdd86
#define CTAG 0x0081
#define ROCE (4791<<16)

// How many frames ahead of the one that is parsed headers are fetched.
#define AHEAD 8

// func parsePlain(base unsafe.Pointer, frames []burst.Frame, port uint64, records []packet.Record) (r Run)
//
// AX is behind the frame's first byte by the bytes of its VLAN tag, and by what an IPv6 header is longer than IPv4's: so the UDP header and all
// behind it have the same offsets in each frame. R15 has these bytes. It and R13, a tagged frame's Scope, are 0 for most frames, and 0 again
// when a frame is done.
//
//	DI   base              X8, X9    ipv4Bits, ipv4Same
//	SI   frame i           X10, X11  ipv4Src, ipv4Dst
//	R8   record i          X12       ipv4Mapped
//	BX   i                 X13       Scope, in the upper half
//	R9   port              X14       Record.IP and Kind
//	R10  plainHeaders      X6, X7    OR and AND of the bytes from the EtherType on
//	R11  Run.Bytes         X5        OR of the bytes up to the end of the BTH
//	R12  number of frames
TEXT ·parsePlain(SB), NOSPLIT, $0-88
	MOVQ     base+0(FP), DI
	MOVQ     frames_base+8(FP), SI
	MOVQ     frames_len+16(FP), R12
	MOVQ     port+32(FP), R9
	MOVQ     records_base+40(FP), R8
	LEAQ     ·plainHeaders(SB), R10
	VMOVDQU  ipv4Bits<>(SB), X8
	VMOVDQU  ipv4Same<>(SB), X9
	VMOVDQU  ipv4Src<>(SB), X10
	VMOVDQU  ipv4Dst<>(SB), X11
	VMOVDQU  ipv4Mapped<>(SB), X12
	VPXOR    X13, X13, X13
	VPINSRQ  $1, R9, X13, X13
	MOVL     $const_ipAndKind, CX
	VPXOR    X14, X14, X14
	VPINSRD  $3, CX, X14, X14
	VPXOR    X5, X5, X5
	VPXOR    X6, X6, X6
	VPCMPEQB X7, X7, X7
	XORL     BX, BX
	XORL     R11, R11
	XORL     R13, R13
	XORL     R15, R15
	CMPQ     BX, R12
	JGE      done

	// Headers that were fetched into the second cache level are fetched into the first in time: where the branches below are mispredicted, as with
	// mixed traffic, the processor doesn't read ahead.
frame:
	LEAQ AHEAD(BX), CX
	CMPQ CX, R12
	JGE  plain
	MOVQ (const_frameData+AHEAD*const_frameSize)(SI), AX
	PREFETCHT0 (AX)(DI*1)

plain:
	CMPL const_frameHead(SI), $const_least4
	JCS  done
	MOVQ const_frameData(SI), AX
	ADDQ DI, AX

ethertype:
	VMOVDQU 12(AX), X0
	VPAND   X8, X0, X1
	VPXOR   X9, X1, X1
	VPTEST  X1, X1
	JNE     other
	VMOVDQU 26(AX), X1
	VPSHUFB X10, X1, X2
	VPSHUFB X11, X1, X3
	VPOR    X12, X2, X2
	VPOR    X12, X3, X3
	VMOVDQU X2, (const_recordFlow+0)(R8)
	VMOVDQU X3, (const_recordFlow+16)(R8)
	MOVL    14(AX), CX
	BSWAPL  CX
	MOVWLZX CX, CX
	SUBL    $20, CX
	JCS     done

	// CX is the length of the UDP header and all behind it by the IP header. X0 has the TOS.
udp:
	MOVL    36(AX), R14
	BSWAPL  R14
	ADDL    $ROCE, CX
	CMPL    CX, R14
	JNE     done
	TESTB   $0x0f, 43(AX)
	JNE     done
	MOVWLZX R14, R14
	LEAL    34(R14)(R15*1), CX
	CMPL    CX, const_frameLen(SI)
	JHI     done
	MOVBLZX 42(AX), DX
	MOVWLZX (R10)(DX*2), CX
	SUBL    $12, R14            // the UDP header and the ICRC
	CMPL    CX, R14
	JGT     done
	LEAL    42(R15)(CX*1), CX
	CMPL    CX, const_frameHead(SI)
	JHI     done
	VMOVDQU 38(AX), X1
	VMOVDQU 34(AX), X2
	VPOR    X1, X5, X5
	VPSHUFB bthQP<>(SB), X1, X3
	VPOR    X13, X3, X3
	VMOVDQU X3, (const_recordFlow+32)(R8)
	VPSHUFB bthRest<>(SB), X1, X1
	VPSHUFB udpRest<>(SB), X2, X2
	VPSHUFB ipRest<>(SB), X0, X3
	VPOR    X1, X2, X2
	VPOR    X14, X3, X3
	VPOR    X2, X3, X3
	MOVL    const_frameLen(SI), CX
	VPINSRD $1, CX, X3, X3
	VMOVDQU X3, const_recordPSN(R8)
	ADDQ    CX, R11
	VPOR    X0, X6, X6
	VPAND   X0, X7, X7
	ANDL    $0xe0, DX
	CMPL    DX, $0x60           // UD
	JEQ     deth

length:
	TESTL R15, R15
	JNE   longer

next:
	ADDQ $const_frameSize, SI
	ADDQ $64, R8
	INCQ BX
	CMPQ BX, R12
	JLT  frame

done:
	VPEXTRB $3, X6, CX
	VPEXTRB $3, X7, DX
	VPEXTRB $4, X5, R8
	MOVQ    BX, r_N+64(FP)
	MOVQ    R11, r_Bytes+72(FP)
	MOVB    CX, r_Any+80(FP)
	MOVB    DX, r_All+81(FP)
	MOVB    R8, r_Opcodes+82(FP)
	RET

deth:
	MOVL   58(AX), CX
	BSWAPL CX
	ANDL   $0xffffff, CX
	MOVL   CX, (const_recordFlow+36)(R8)
	JMP    length

	// The record of a frame with a tag has another Scope, and another IP.
longer:
	XORL  R15, R15
	TESTQ R13, R13
	JEQ   next
	MOVQ  R13, (const_recordFlow+40)(R8)
	ADDW  $4, const_recordIP(R8)
	XORL  R13, R13
	JMP   next

other:
	MOVWLZX 12(AX), CX
	CMPL    CX, $IPV6
	JEQ     ipv6
	CMPL    CX, $CTAG
	JNE     done
	TESTL   R15, R15
	JNE     done
	MOVWLZX 14(AX), CX
	ROLW    $8, CX
	ANDL    $0xfff, CX
	ORL     $const_cTag, CX
	SHLQ    $16, CX
	MOVQ    R9, R13
	ORQ     CX, R13
	MOVL    $4, R15
	ADDQ    $4, AX
	JMP     ethertype

ipv6:
	CMPL    const_frameHead(SI), $const_least6
	JCS     done
	MOVL    14(AX), DX
	BSWAPL  DX
	MOVL    DX, CX
	SHRL    $28, CX
	CMPL    CX, $6
	JNE     done
	SHLL    $4, DX
	VMOVD   DX, X0              // the traffic class is in byte 3
	CMPB    20(AX), $17
	JNE     done
	VMOVDQU 22(AX), X1
	VMOVDQU 38(AX), X2
	VPSHUFB ipv6Halves<>(SB), X1, X1
	VPSHUFB ipv6Halves<>(SB), X2, X2
	VMOVQ   X1, CX
	TESTQ   CX, CX
	JEQ     done                // it may be IPv4-mapped
	VMOVQ   X2, CX
	TESTQ   CX, CX
	JEQ     done
	VMOVDQU X1, (const_recordFlow+0)(R8)
	VMOVDQU X2, (const_recordFlow+16)(R8)
	MOVWLZX 18(AX), CX
	ROLW    $8, CX
	ADDL    $20, R15
	ADDQ    $20, AX
	JMP     udp
