//go:build !purego && !race

#include "go_asm.h"
#include "textflag.h"

// How far the three steps of a packet are apart, in packets: the time for a cache line to arrive.
#define AHEAD 16

// func lookupFirst(t *Table, packets []packet.Record, now int64, out []Ref) (missed uint64)
//
// Turn i of the loop hashes packet i and prefetches its bucket, finds the likely entry of packet i-AHEAD in its bucket and prefetches the entry,
// and compares the key of packet i-2*AHEAD with its entry. So each step finds its cache line there, and computes while others are fetched.
//
//	DI   t                   R8   number of buckets
//	SI   packet i            R9   buckets
//	R11  Ref of packet i     R10  entries
//	BX   i                   R12  now
//	R15  missed              R13  a flow last seen before this time is idle
TEXT ·lookupFirst(SB), NOSPLIT, $0-72
	MOVQ t+0(FP), DI
	MOVQ packets_base+8(FP), SI
	MOVQ now+32(FP), R12
	MOVQ out_base+40(FP), R11
	MOVQ Table_buckets+8(DI), R8
	MOVQ Table_buckets(DI), R9
	MOVQ Table_entries(DI), R10
	MOVQ R12, R13
	SUBQ Table_lasting(DI), R13
	XORL BX, BX
	XORL R15, R15

turn:
	CMPQ BX, packets_len+16(FP)
	JGE  pick

	// Hash: AX and DX are the factors of each product and its halves, then R14 and DX the addresses' two parts.
	MOVQ 0(SI), AX
	MOVQ 16(SI), DX
	MOVQ AX, CX
	ORQ  DX, CX
	JNE  ipv6
	MOVQ 8(SI), AX
	MOVQ 24(SI), DX
	XORQ Table_secret+8(DI), AX
	XORQ Table_secret+24(DI), DX
	MULQ DX
	XORQ AX, DX
	MOVQ DX, R14
	ROLQ $32, DX
	JMP  join

ipv6:
	MOVQ DX, CX
	MOVQ 8(SI), DX
	XORQ Table_secret+0(DI), AX
	XORQ Table_secret+8(DI), DX
	MULQ DX
	XORQ AX, DX
	MOVQ DX, R14
	MOVQ 24(SI), AX
	XORQ Table_secret+16(DI), CX
	XORQ Table_secret+24(DI), AX
	MULQ CX
	XORQ AX, DX

join:
	MOVQ  32(SI), AX
	XORQ  Table_secret+32(DI), AX
	XORQ  R14, AX
	XORQ  40(SI), DX
	XORQ  Table_secret+40(DI), DX
	MULQ  DX
	XORQ  DX, AX
	MOVQ  AX, Table_hashes(DI)(BX*8)
	SHRQ  $32, AX
	IMULQ R8, AX
	SHRQ  $32, AX
	SHLQ  $6, AX
	PREFETCHT0 (R9)(AX*1)

pick:
	LEAQ -AHEAD(BX), CX
	CMPQ CX, packets_len+16(FP)
	JCC  compare                // also if negative

	// AX is the bucket. Bit 16 of DX makes the flow None if no tag is equal: see bucket.flows.
	MOVQ      (Table_hashes-8*AHEAD)(DI)(BX*8), AX
	MOVL      AX, DX
	ORL       $1, DX
	MOVL      DX, X0
	PSHUFLW   $0, X0, X0
	SHRQ      $32, AX
	IMULQ     R8, AX
	SHRQ      $32, AX
	SHLQ      $6, AX
	ADDQ      R9, AX
	PUNPCKLQDQ X0, X0
	PCMPEQW   bucket_tags(AX), X0
	PMOVMSKB  X0, DX
	ORL       $0x10000, DX
	BSFL      DX, DX
	MOVL      bucket_flows(AX)(DX*2), CX
	MOVL      CX, (Table_candidates-4*AHEAD)(DI)(BX*4)
	SHLQ      $6, CX
	PREFETCHT0 (R10)(CX*1)

compare:
	LEAQ -(2*AHEAD)(BX), CX
	CMPQ CX, packets_len+16(FP)
	JCC  next

	// AX is the index of the entry, DX the entry.
	MOVL     (Table_candidates-8*AHEAD)(DI)(BX*4), AX
	MOVQ     AX, DX
	SHLQ     $6, DX
	ADDQ     R10, DX
	MOVOU    (0-128*AHEAD)(SI), X0
	MOVOU    (16-128*AHEAD)(SI), X1
	MOVOU    (32-128*AHEAD)(SI), X2
	PCMPEQB  (entry_key+0)(DX), X0
	PCMPEQB  (entry_key+16)(DX), X1
	PCMPEQB  (entry_key+32)(DX), X2
	PAND     X1, X0
	PAND     X2, X0
	PMOVMSKB X0, R14
	CMPL     R14, $0xffff
	JNE      miss
	CMPQ     entry_lastSeen(DX), R13
	JLT      miss
	MOVQ     R12, entry_lastSeen(DX)
	MOVL     (entry_state+4)(DX), DX
	MOVL     AX, (Ref_Index-16*AHEAD)(R11)
	MOVL     DX, (Ref_Generation-16*AHEAD)(R11)

next:
	ADDQ $64, SI
	ADDQ $8, R11
	INCQ BX
	LEAQ -(2*AHEAD)(BX), CX
	CMPQ CX, packets_len+16(FP)
	JLT  turn
	MOVQ R15, missed+64(FP)
	RET

miss:
	BTSQ CX, R15
	JMP  next
