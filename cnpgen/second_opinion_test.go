//go:build secondopinion

package cnpgen

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

// opinion is a frame for others to judge.
type opinion struct {
	kind       string
	extensions bool // ICRCExtensionHeaders
	pKey       uint16
	frame      []byte
}

func (o opinion) String() string {
	covered := 0
	if o.extensions {
		covered = 1
	}
	return fmt.Sprintf("%s %d %04x %x\n", o.kind, covered, o.pKey, o.frame)
}

// TestScapyAgrees has scapy and zlib check the golden frames, as written by hand, and many frames as built.
func TestScapyAgrees(t *testing.T) {
	frames := append(goldenOpinions(), randomOpinions()...)
	if out, err := ask(frames); err != nil || !strings.Contains(out, fmt.Sprintf("checked %d frames, 0 wrong", len(frames))) {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestScapyObjects: the checks are worth something. A golden frame is refused with any octet of its IP packet changed, by default one in four, except the first of
// IPv6, where only DSCP changes.
func TestScapyObjects(t *testing.T) {
	var frames []opinion
	for i, o := range goldenOpinions() {
		var p packet.Parsed
		packet.Parse(o.frame, uint32(len(o.frame)), &p)
		const step = 4*effort.Short + 4*effort.Race + effort.Long
		for at := int(p.L3) + 1 + i%step; o.extensions && at < len(o.frame); at += step {
			broken := bytes.Clone(o.frame)
			broken[at] ^= 1
			frames = append(frames, opinion{o.kind, o.extensions, o.pKey, broken})
		}
	}
	out, err := ask(frames)
	if want := fmt.Sprintf("checked %d frames, %d wrong", len(frames), len(frames)); err == nil || !strings.Contains(out, want) {
		t.Errorf("broken frames pass: %v:\n%s", err, out)
	}
}

// ask runs the Python script. Without it, scapy or Python there is no second opinion, which is an error like any.
func ask(frames []opinion) (string, error) {
	var input strings.Builder
	for _, o := range frames {
		input.WriteString(o.String())
	}
	cmd := exec.Command("/usr/bin/python3", "-W", "ignore", "testdata/second_opinion.py")
	cmd.Stdin = strings.NewReader(input.String())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func goldenOpinions() []opinion {
	var all []opinion
	for _, g := range goldens {
		n := notifications.Find(g.name)
		gw := g.gateway()
		all = append(all, opinion{n.Kind, gw.ICRCExtensionHeaders, 0xffff, n.Bytes()})
	}
	return all
}

// randomOpinions are frames about data packets with tags and extension headers, from a fixed seed.
func randomOpinions() []opinion {
	r := rand.New(rand.NewPCG(1, 2))
	address := func(v6 bool) packet.Addr {
		if v6 {
			return packet.Addr{Hi: r.Uint64(), Lo: r.Uint64()}
		}
		return packet.Addr{Lo: 0xffff<<32 | uint64(r.Uint32())}
	}
	var all []opinion
	for i := range 60 {
		v6 := i%2 == 0
		d := dataPacket{src: address(v6), dst: address(v6), v6: v6, srcPort: uint16(r.Uint32()), pKey: uint16(1 + r.IntN(0xffff)), destQP: r.Uint32N(1 << 24)}
		words := []uint16{0x8100, uint16(r.Uint32()), 0x8100, uint16(r.Uint32())}
		d = d.tagged(words[:2*r.IntN(3)]...)
		if v6 && r.IntN(2) == 0 {
			d.extensions = []extension{{header: packet.ProtoDestOpts, length: 1 + r.IntN(3)}}
		}
		if v6 && r.IntN(2) == 0 {
			d = d.traced(0x31, byte(r.IntN(2)), "0001100200c00000"+hex.EncodeToString(count(4*r.IntN(62))))
		}
		d.payload = count(r.IntN(1600))
		g := testGateway
		g.IPv4, g.IPv6, g.DSCP = address(false), address(true), uint8(r.IntN(64))
		g.ICRCExtensionHeaders, g.FlowPKey = r.IntN(2) == 0, r.IntN(2) == 0
		l := LongHaul{Level: uint8(r.Uint32()), Action: Action(r.IntN(4)), Parameter: uint16(r.Uint32()), SourceQP: r.Uint32N(1 << 24),
			MetricType: uint8(r.Uint32()), MetricValue: r.Uint32()}
		var x *Extension
		if r.IntN(2) == 0 {
			x = &Extension{Timestamp: r.Uint64N(2), Device: count(r.IntN(9)), Path: count(r.IntN(9)),
				Others: make([]packet.Object, r.IntN(3))}
		}
		all = append(all, opinionsOf(d, g, l, x)...)
	}
	return all
}

func opinionsOf(d dataPacket, g Gateway, l LongHaul, x *Extension) []opinion {
	var all []opinion
	frame, p := d.frame()
	for _, f := range []struct {
		kind  string
		build builder
	}{
		{"standard-cnp", standardCNP(l.SourceQP)},
		{"fast-cnp", fastCNP},
		{"ppfc", ppfc(PPFC{Resume: l.Level < 128, Port: l.Parameter, Duration: l.Parameter})},
		{"proxy-notification", notifyProxy(proxy4, l.Level&7)},
		{"proxy-notification", notifyProxy(proxy6, l.Level&7)},
		{"long-haul-cnp", longHaul(LongHaulCNP, l, x)},
		{"long-haul-cnp-icmpv6", longHaul(LongHaulCNPICMPv6, l, x)},
	} {
		out := make([]byte, MaxLen)
		if n := f.build(out, frame, &p, &g); n > 0 {
			all = append(all, opinion{f.kind, g.ICRCExtensionHeaders, wantPKey(&d, &g), out[:n]})
		}
	}
	return all
}
