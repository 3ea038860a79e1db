//go:build secondopinion

package dataplane_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit"
	"github.com/cnpgate/cnpgate/internal/testkit/opinion"
)

// exchange is a frame that scapy has built for the gateway, and what scapy builds as the gateway's frame because of it.
type exchange struct {
	name      string
	ask, want []byte
}

// TestSecondOpinionAnswers: the gateway's answers to scapy's ARP requests, Neighbor Solicitations and echo requests are octet for octet those that scapy
// builds. Of a notification to the gateway that scapy has built, the sender gets the standard CNP that scapy builds, with the ICRC.
func TestSecondOpinionAnswers(t *testing.T) {
	var all []exchange
	for line := range strings.Lines(opinion.Scapy(t, "", "testdata/proxynode.py", "02:63:6e:70:00:01")) {
		words := strings.Fields(line)
		ask, err1 := hex.DecodeString(words[1])
		want, err2 := hex.DecodeString(words[2])
		if err1 != nil || err2 != nil {
			t.Fatalf("%q is not hexadecimal", line)
		}
		all = append(all, exchange{words[0], ask, want})
	}
	const answers = 3 * (5 + 8)
	if len(all) != answers+2 {
		t.Fatalf("%d exchanges", len(all))
	}
	for _, x := range all[:answers] {
		a := answerOf(t, proxyFor(packet.StandardCNP), wan, x.ask)
		if len(a.back) != 1 || len(a.through) != 0 || !bytes.Equal(a.back[0].Octets, x.want) {
			t.Errorf("%s: %d forwarded, answers %x, scapy builds %x", x.name, len(a.through), octets(a.back), x.want)
		}
	}
	for _, x := range all[answers:] {
		s := newScene(t, proxyFor(packet.StandardCNP), nil)
		f := data(false, 0).Frame()
		s.arrive(f)
		s.arriveAt(wan, x.ask)
		s.arrive(f)
		notes := s.finish()
		if len(notes) != 1 || !bytes.Equal(padded(notes[0]), x.want) {
			t.Errorf("%s: %d notifications, scapy builds % x; refused %v", x.name, len(notes), x.want, refused(s.Rig, wan))
		}
	}
}

func padded(f testkit.Sent) []byte {
	return append(f.Octets, make([]byte, max(0, 60-len(f.Octets)))...)
}

// octets are the frames' bytes.
func octets(frames []testkit.Sent) (all [][]byte) {
	for _, f := range frames {
		all = append(all, f.Octets)
	}
	return all
}
