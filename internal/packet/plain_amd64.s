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

// EtherTypes and the UDP port as little-endian numbers.
#define IPV6 0xdd86
#define CTAG 0x0081
#define ROCE 0xb712

// func parsePlain(base unsafe.Pointer, frames []burst.Frame, port uint64, records []Record) (r Run)
//
// Of a frame with a VLAN tag, AX is 4 behind its first byte, so that what follows the tag has the same offsets as without one.
//
//	DI   base             R10  plainHeaders
//	SI   frame i          R11  Run.Bytes
//	R8   record i         R12  Run.Any
//	BX   i                R13  Run.All
//	R9   port
TEXT ·parsePlain(SB), NOSPLIT, $0-88
	MOVQ  base+0(FP), DI
	MOVQ  frames_base+8(FP), SI
	MOVQ  port+32(FP), R9
	MOVQ  records_base+40(FP), R8
	LEAQ  ·plainHeaders(SB), R10
	MOVOU ipv4Bits<>(SB), X8
	MOVOU ipv4Same<>(SB), X9
	MOVOU ipv4Src<>(SB), X10
	MOVOU ipv4Dst<>(SB), X11
	MOVOU ipv4Mapped<>(SB), X12
	MOVOU ipv6Halves<>(SB), X13
	XORL  BX, BX
	XORL  R11, R11
	XORL  R12, R12
	MOVL  $0xff, R13

frame:
	CMPQ BX, frames_len+16(FP)
	JGE  done
	CMPL const_frameHead(SI), $const_least4
	JCS  done
	MOVQ const_frameData(SI), AX
	ADDQ DI, AX
	MOVQ R9, R14 // the word Place
	XORL R15, R15 // bytes of the tag

ethertype:
	LEAL     const_ipAndKind(R15), CX
	MOVL     CX, Record_IP(R8)
	MOVOU    12(AX), X0
	PAND     X8, X0
	PCMPEQB  X9, X0
	PMOVMSKB X0, CX
	CMPL     CX, $0xffff
	JNE      other
	MOVOU    26(AX), X0
	MOVOU    X0, X1
	PSHUFB   X10, X0
	PSHUFB   X11, X1
	POR      X12, X0
	POR      X12, X1
	MOVOU    X0, Record_Flow+0(R8)
	MOVOU    X1, Record_Flow+16(R8)
	MOVWLZX  16(AX), CX
	ROLW     $8, CX
	SUBL     $20, CX
	MOVBLZX  15(AX), DX
	ADDL     $34, R15
	ADDQ     $34, AX

	// AX is the UDP header, R15 its offset in the frame, CX its length by the IP header, DX the traffic class.
udp:
	MOVQ    R14, Record_Flow+40(R8)
	MOVWLZX 4(AX), R14
	ROLW    $8, R14
	CMPL    CX, R14
	JNE     done
	CMPW    2(AX), $ROCE
	JNE     done
	TESTB   $0x0f, 9(AX)
	JNE     done
	ADDL    R15, CX
	CMPL    CX, const_frameLen(SI)
	JHI     done
	MOVBLZX 8(AX), CX
	SHLL    $8, DX
	ORL     CX, DX              // class << 8 | opcode
	MOVBLZX (R10)(CX*1), CX
	TESTL   CX, CX
	JEQ     done
	SUBL    $12, R14            // the UDP header and the ICRC
	JCS     done
	CMPL    CX, R14
	JHI     done
	LEAL    8(R15)(CX*1), CX
	CMPL    CX, const_frameHead(SI)
	JHI     done
	MOVL    12(AX), CX
	BSWAPL  CX
	ANDL    $0xffffff, CX
	MOVQ    CX, Record_Flow+32(R8)
	MOVL    16(AX), CX
	BSWAPL  CX
	ANDL    $0xffffff, CX
	MOVL    CX, Record_PSN(R8)
	MOVL    const_frameLen(SI), CX
	MOVL    CX, Record_Len(R8)
	ADDQ    CX, R11
	MOVWLZX 0(AX), CX
	ROLW    $8, CX
	MOVL    DX, R14
	SHLL    $16, R14
	ORL     R14, CX
	MOVL    CX, Record_SrcPort(R8)
	MOVL    DX, CX
	SHRL    $8, CX
	ORL     CX, R12
	ANDL    CX, R13
	ANDL    $0xe0, DX
	CMPL    DX, $0x60           // UD
	JEQ     deth

next:
	ADDQ $const_frameSize, SI
	ADDQ $64, R8
	INCQ BX
	JMP  frame

deth:
	MOVL   24(AX), CX
	BSWAPL CX
	ANDL   $0xffffff, CX
	MOVL   CX, Record_Flow+36(R8)
	JMP    next

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
	ORQ     CX, R14
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
	SHRL    $20, DX
	MOVBLZX DX, DX
	CMPB    20(AX), $17
	JNE     done
	MOVOU   22(AX), X0
	MOVOU   38(AX), X1
	PSHUFB  X13, X0
	PSHUFB  X13, X1
	MOVQ    X0, CX
	TESTQ   CX, CX
	JEQ     done                // it may be IPv4-mapped
	MOVQ    X1, CX
	TESTQ   CX, CX
	JEQ     done
	MOVOU   X0, Record_Flow+0(R8)
	MOVOU   X1, Record_Flow+16(R8)
	MOVWLZX 18(AX), CX
	ROLW    $8, CX
	ADDL    $54, R15
	ADDQ    $54, AX
	JMP     udp

done:
	MOVQ BX, r_N+64(FP)
	MOVQ R11, r_Bytes+72(FP)
	MOVB R12, r_Any+80(FP)
	MOVB R13, r_All+81(FP)
	RET
