package packet

import "testing"

// fastCNPOption is the body of a Destination Options header with option 1 of a Fast CNP, padded to 24 octets (draft-xiao-fast-cnp 4).
var fastCNPOption = []byte("\x9e\x10" + // option type, 16 octets
	"\xfd\x00\x00\x18\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02" + // destination of the data packet
	"\x01\x02\x00\x00") // PadN to 24 octets

func TestClassify(t *testing.T) {
	options := func(s string) []extHeader { return []extHeader{{60, []byte(s)}} }
	for _, c := range []struct {
		name string
		stack
		want Notification
	}{
		{"data", stack{family: 6, opcode: RCWriteMiddle}, NotANotification},
		{"data with reserved BTH bits", stack{family: 4, opcode: RCWriteMiddle, bthFlags: 0xff}, NotANotification},
		{"data behind the option", stack{family: 6, opcode: RCWriteMiddle, ext: []extHeader{{60, fastCNPOption}}}, NotANotification},
		{"CNP over IPv4", stack{family: 4, opcode: CNP, bthFlags: BECN, payload: 16}, StandardCNP},
		{"CNP over IPv6", stack{family: 6, opcode: CNP, bthFlags: BECN, payload: 16}, StandardCNP},
		{"E bit over IPv4", stack{family: 4, opcode: CNP, bthFlags: BECN | ExtensionBit, payload: 12}, ExtendedCNP},
		{"E bit over IPv6", stack{family: 6, opcode: CNP, bthFlags: ExtensionBit, payload: 24}, ExtendedCNP},

		{"option 1", stack{family: 6, opcode: CNP, ext: []extHeader{{60, fastCNPOption}}, payload: 16}, FastCNP},
		{"option and E bit", stack{family: 6, opcode: CNP, bthFlags: ExtensionBit, ext: []extHeader{{60, fastCNPOption}}}, FastCNP},
		{"option behind Pad1 and PadN", stack{family: 6, opcode: CNP, ext: options("\x00\x00\x01\x01\xff\x9e\x00\x00\x00\x00\x00\x00\x00\x00")}, FastCNP},
		{"option in the first of two headers", stack{family: 6, opcode: CNP,
			ext: []extHeader{{60, fastCNPOption}, {43, make([]byte, 6)}, {60, make([]byte, 6)}}}, FastCNP},
		{"option in a Hop-by-Hop header", stack{family: 6, opcode: CNP, ext: []extHeader{{0, fastCNPOption}}}, StandardCNP},
		{"option in a Hop-by-Hop header, padding in the other", stack{family: 6, opcode: CNP,
			ext: []extHeader{{0, fastCNPOption}, {60, make([]byte, 6)}}}, StandardCNP},
		{"option behind one Pad1", stack{family: 6, opcode: CNP, ext: options("\x00\x9e\x03\x00\x00\x00")}, FastCNP},
		{"the code as data of another option", stack{family: 6, opcode: CNP, ext: options("\x1e\x04\x9e\x10\x00\x00")}, StandardCNP},
		{"option cut by its header", stack{family: 6, opcode: CNP, ext: options("\x00\x00\x00\x00\x9e\x01")}, StandardCNP},
		{"option without length", stack{family: 6, opcode: CNP, ext: options("\x00\x00\x00\x00\x00\x9e")}, StandardCNP},
		{"padding only", stack{family: 6, opcode: CNP, ext: options("\x01\x04\x00\x00\x00\x00")}, StandardCNP},

		{"ICMPv6 Long-haul CNP", stack{family: 6, proto: 58, body: []byte{200, 0, 0, 0}}, LongHaulCNPICMPv6},
		{"ICMPv6 behind extension headers", stack{family: 6, ext: []extHeader{{0, make([]byte, 6)}}, proto: 58, body: []byte{200}}, LongHaulCNPICMPv6},
		{"ICMPv6 echo", stack{family: 6, proto: 58, body: []byte{128, 0, 0, 0}}, NotANotification},
		{"ICMPv6 without a type", stack{family: 6, ext: []extHeader{{0, make([]byte, 6)}}, proto: 58}, NotANotification},
		{"protocol 58 over IPv4", stack{family: 4, proto: 58, body: []byte{200, 0, 0, 0}}, NotANotification},

		{"to the proxy over IPv4", stack{family: 4, dstPort: 1022}, ProxyNotification},
		{"to the proxy over IPv6", stack{family: 6, dstPort: 1022}, ProxyNotification},
		{"from the proxy's port", stack{family: 6, dstPort: 1023, srcPort: 1022}, NotANotification},
		{"TCP", stack{family: 4, proto: 6, body: []byte{0x03, 0xfe, 0x03, 0xfe, 0, 0, 0, 0}}, NotANotification},
		{"a fragment", stack{family: 4, frag: 0x2000, dstPort: 1022}, NotANotification},
	} {
		frame, _ := c.build()
		var p Parsed
		Parse(frame, uint32(len(frame)), &p)
		if got := Classify(frame, &p, &DefaultCodePoints); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestClassifyPadding: Ethernet padding isn't the ICMPv6 message's type.
func TestClassifyPadding(t *testing.T) {
	frame, p := stack{family: 6, ext: []extHeader{{0, make([]byte, 6)}}, proto: 58, padding: 1}.build()
	frame[p.IPEnd] = DefaultCodePoints.LongHaulICMPv6Type
	if got := Classify(frame, &p, &DefaultCodePoints); got != NotANotification {
		t.Errorf("%q, want none", got)
	}
}

// TestClassifyCodePoints: the numbers are the caller's.
func TestClassifyCodePoints(t *testing.T) {
	other := CodePoints{FastCNPOption: 0x9f, FastCNPTraceOption: 0x9d, LongHaulICMPv6Type: 201, ProxyPort: 1023}
	for i, c := range []struct {
		stack
		want Notification
	}{
		{stack{family: 6, opcode: CNP, ext: []extHeader{{60, fastCNPOption}}}, StandardCNP},
		{stack{family: 6, opcode: CNP, ext: []extHeader{{60, []byte("\x9f\x04\x00\x00\x00\x00")}}}, FastCNP},
		{stack{family: 6, opcode: CNP, ext: []extHeader{{60, []byte("\x9d\x04\x00\x00\x00\x00")}}}, FastCNP},
		{stack{family: 6, proto: 58, body: []byte{200}}, NotANotification},
		{stack{family: 6, proto: 58, body: []byte{201}}, LongHaulCNPICMPv6},
		{stack{family: 6, dstPort: 1022}, NotANotification},
		{stack{family: 6, dstPort: 1023}, ProxyNotification},
	} {
		frame, p := c.build()
		if got := Classify(frame, &p, &other); got != c.want {
			t.Errorf("case %d: %q, want %q", i, got, c.want)
		}
	}
}

func TestNotificationString(t *testing.T) {
	for n, want := range []string{"fast-cnp", "long-haul-cnp", "long-haul-cnp-icmpv6", "ppfc", "standard-cnp", "proxy-notification", "extended-cnp", "pause", "pfc", "none",
		"unknown"} {
		if got := Notification(n).String(); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// TestKinds: the row of each kind that a gateway sends says all that others ask it for.
func TestKinds(t *testing.T) {
	for n := range Notification(SentNotifications) {
		if k := &kinds[n]; k.name == "" || k.section == "" || k.asks == 0 || k.slows == 0 {
			t.Errorf("the row of %v in kinds needs name, section, asks and slows: %+v", n, *k)
		}
	}
}
