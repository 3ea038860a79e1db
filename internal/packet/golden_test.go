package packet

import "testing"

// The golden frames below are written out octet by octet. The first two are real: a Soft-RoCE kernel made them, ICRC included.
var goldenFrames = []struct {
	name  string
	frame string
	want  Parsed
	icrc  bool // the ICRC is right
}{
	{
		name: "RC Acknowledge over IPv4",
		frame: "\x02\x00\x00\x18\x00\x02" + "\x02\x00\x00\x18\x00\x01" + "\x08\x00" + // Ethernet
			"\x45\x6a\x00\x30" + // 14: IPv4, IHL 5, DSCP 26, ECT(0), total length 48
			"\x8e\x0f\x40\x00" + // identification, DF
			"\x40\x11\x20\x1c" + // TTL 64, UDP, checksum
			"\xc6\x12\x00\x01" + "\xc6\x12\x00\x02" + // 198.18.0.1 to 198.18.0.2
			"\xde\xb5\x12\xb7\x00\x1c\x00\x00" + // 34: UDP 57013 to 4791, length 28, no checksum
			"\x11\x00\xff\xff" + // 42: BTH: RC Acknowledge, P_Key
			"\x00\x00\x01\xa2" + "\x00\x12\x97\xdd" + // destination QP 418, PSN 1218525
			"\x1f\x00\x00\x01" + // 54: AETH: ACK, invalid credit count; MSN 1
			"\x00\x1a\xb2\xae", // 58: ICRC
		want: Parsed{
			Kind: RoCEv2, Family: 4, DSCP: 26, ECN: ECT0, Proto: 17, EtherType: 0x0800,
			Src: Addr{0, 0xffff_c6120001}, Dst: Addr{0, 0xffff_c6120002}, L3: 14, Outer: 14, L4: 34, IPEnd: 62, SrcPort: 57013, DstPort: 4791,
			BTH: 42, Payload: 58, ICRC: 58, Opcode: RCAcknowledge, DestQP: 418, PSN: 1218525,
		},
		icrc: true,
	},
	{
		name: "RC Acknowledge over IPv6",
		frame: "\x02\x00\x00\x18\x00\x02" + "\x02\x00\x00\x18\x00\x01" + "\x86\xdd" +
			"\x60\x00\x00\x00" + // 14: IPv6, traffic class 0, flow label 0
			"\x00\x1c\x11\x40" + // payload length 28, UDP, hop limit 64
			"\xfd\x00\x00\x18\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x01" +
			"\xfd\x00\x00\x18\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x02" +
			"\xed\xf8\x12\xb7\x00\x1c\x00\x00" + // 54: UDP
			"\x11\x00\xff\xff" + "\x00\x00\x01\xe8" + "\x00\x1f\xa1\x0e" + // 62: BTH
			"\x1f\x00\x00\x01" + // 74: AETH
			"\x11\xfe\x3e\x09", // 78: ICRC
		want: Parsed{
			Kind: RoCEv2, Family: 6, Proto: 17, EtherType: 0x86dd,
			Src: Addr{0xfd000018_00000000, 1}, Dst: Addr{0xfd000018_00000000, 2}, L3: 14, Outer: 14, L4: 54, IPEnd: 82, SrcPort: 60920, DstPort: 4791,
			BTH: 62, Payload: 78, ICRC: 78, Opcode: RCAcknowledge, DestQP: 488, PSN: 0x1fa10e,
		},
		icrc: true,
	},
	{
		name: "UD SEND Only in a double-tagged frame with IPv4 options and padding",
		frame: "\x02\x00\x00\x18\x00\x02" + "\x02\x00\x00\x18\x00\x01" +
			"\x88\xa8\x60\x64" + // service tag, priority 3, VLAN 100
			"\x81\x00\x0f\xff" + // customer tag, priority 0, VLAN 4095
			"\x08\x00" +
			"\x46\x03\x00\x38" + // 22: IHL 6, DSCP 0, CE, total length 56
			"\x00\x00\x00\x00" + "\x40\x11\x00\x00" +
			"\xc0\x00\x02\x01" + "\xc0\x00\x02\x02" +
			"\x94\x04\x00\x00" + // Router Alert
			"\x00\x00\x12\xb7\x00\x20\x12\x34" + // 46: UDP 0 to 4791, length 32
			"\x64\x40\xff\xff" + // 54: UD SEND Only
			"\xc0\x00\x00\x11" + "\x80\xff\xff\xff" + // FECN and BECN, destination QP 17; acknowledge request, PSN
			"\x80\x01\x00\x00" + "\xee\xab\xcd\xef" + // 66: DETH: Q_Key; a reserved octet, source QP
			"\x00\x00\x00\x00" + // 74: ICRC
			"\x00\x00\x00\x00", // 78: Ethernet padding
		want: Parsed{
			Kind: RoCEv2, Family: 4, ECN: CE, Proto: 17, Tags: 2, OuterTag: 0x2000 | 100, InnerTag: 0x1000 | 4095, EtherType: 0x0800,
			Src: Addr{0, 0xffff_c0000201}, Dst: Addr{0, 0xffff_c0000202}, L3: 22, Outer: 22, L4: 46, IPEnd: 78, DstPort: 4791,
			BTH: 54, Payload: 74, ICRC: 74, Opcode: UDSendOnly, BTHFlags: FECN | BECN, DestQP: 17, PSN: 0xffffff, SourceQP: 0xabcdef,
		},
	},
	{
		name: "Fast CNP behind a Hop-by-Hop and a Destination Options header (draft-xiao-fast-cnp 4, option 1)",
		frame: "\x02\x00\x00\x18\x00\x02" + "\x02\x00\x00\x18\x00\x01" + "\x86\xdd" +
			"\x6c\x00\x00\x00" + // 14: DSCP 48, Not-ECT
			"\x00\x48\x00\x40" + // payload length 72, Hop-by-Hop Options, hop limit 64
			"\xfd\x00\x00\x01\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x01" +
			"\xfd\x00\x00\x18\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x02" +
			"\x3c\x00\x01\x04\x00\x00\x00\x00" + // 54: then Destination Options, 8 octets; PadN
			"\x11\x02\x9e\x10" + // 62: then UDP, 24 octets; Fast CNP option of 16 octets
			"\xfd\x00\x00\x18\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x03" +
			"\x01\x02\x00\x00" + // PadN
			"\xc1\x23\x12\xb7\x00\x28\x00\x00" + // 86: UDP, length 40
			"\x81\x00\xff\xff" + "\x40\x00\x01\x02" + "\x00\x00\x00\x00" + // 94: BTH: CNP, BECN, destination QP 258
			"\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + // 106: reserved
			"\x00\x00\x00\x00", // 122: ICRC
		want: Parsed{
			Kind: RoCEv2, Family: 6, DSCP: 48, Proto: 17, EtherType: 0x86dd,
			Src: Addr{0xfd000001_00000000, 1}, Dst: Addr{0xfd000018_00000000, 2}, L3: 14, Outer: 14, L4: 86, HopOpts: 54, DstOpts: 62, IPEnd: 126,
			SrcPort: 0xc123, DstPort: 4791, BTH: 94, Payload: 106, ICRC: 122, Opcode: CNP, BTHFlags: BECN, DestQP: 258,
		},
	},
	{
		name:  "PFC",
		frame: "\x01\x80\xc2\x00\x00\x01" + "\x02\x00\x00\x18\x00\x01" + "\x88\x08" + "\x01\x01\x00\x08" + "\x00\x00\x00\x00",
		want:  Parsed{Kind: MACControl, EtherType: 0x8808},
	},
	{
		name:  "PAUSE behind a priority tag",
		frame: "\x01\x80\xc2\x00\x00\x01" + "\x02\x00\x00\x18\x00\x01" + "\x81\x00\xe0\x00" + "\x88\x08" + "\x00\x01\xff\xff",
		want:  Parsed{Kind: MACControl, EtherType: 0x8808, Tags: 1, OuterTag: 0x1000},
	},
	{
		name:  "LLDP",
		frame: "\x01\x80\xc2\x00\x00\x0e" + "\x02\x00\x00\x18\x00\x01" + "\x88\xcc" + "\x02\x07\x04",
		want:  Parsed{EtherType: 0x88cc},
	},
	{
		name:  "IEEE 802.3 length (spanning tree)",
		frame: "\x01\x80\xc2\x00\x00\x00" + "\x02\x00\x00\x18\x00\x01" + "\x00\x26" + "\x42\x42\x03",
		want:  Parsed{},
	},
	{
		name: "ARP in a VLAN",
		frame: "\xff\xff\xff\xff\xff\xff" + "\x02\x00\x00\x18\x00\x01" + "\x81\x00\x00\x07" + "\x08\x06" +
			"\x00\x01\x08\x00\x06\x04\x00\x01",
		want: Parsed{EtherType: 0x0806, Tags: 1, OuterTag: 0x1000 | 7},
	},
}

func TestGoldenFrames(t *testing.T) {
	for _, c := range goldenFrames {
		var p Parsed
		Parse([]byte(c.frame), uint32(len(c.frame)), &p)
		if c.want.Len = uint32(len(c.frame)); p != c.want {
			t.Errorf("%s: parsed to\n%+v, want\n%+v", c.name, p, c.want)
		}
		if c.icrc && !VerifyICRC([]byte(c.frame), &p) {
			t.Errorf("%s: the ICRC isn't taken", c.name)
		}
	}
}
