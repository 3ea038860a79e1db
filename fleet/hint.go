package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"
)

// Hint is a host's statement about one of its QPs, with the members of the API's hint (docs/api.md, PUT /v1/hints): QP SourceQP of the host's
// address Source is connected to QP DestinationQP at Destination. It counts for the packets from Source only: a host can't speak for the
// other end. Without Destination it counts where only one host with that QP gets packets from Source.
type Hint struct {
	Source        netip.Addr `json:"source_ip"`
	Destination   netip.Addr `json:"destination_ip,omitzero"`
	SourceQP      uint32     `json:"source_qp"`
	DestinationQP uint32     `json:"destination_qp"`
	Tags          string     `json:"tags,omitempty"`
	Tunnel        string     `json:"tunnel,omitempty"`
}

// HintMessage is the body of a message of the kind wire.Hints, as JSON. A host sends all its hints again before their lifetime ends, in as
// many messages as needed; and at once what has changed.
type HintMessage struct {
	Lifetime  int    `json:"lifetime_ms"`         // of Hints, from arrival on; 1000 to 600,000
	Hints     []Hint `json:"hints,omitempty"`     // they replace what contradicts them
	Withdrawn []Hint `json:"withdrawn,omitempty"` // of connections that have ended
}

// Bounds of a HintMessage.
const (
	MaxHintsAMessage = 512
	MinHintLifetime  = time.Second
	MaxHintLifetime  = 10 * time.Minute
	maxHintText      = 64 // bytes of Tags and of Tunnel
)

// Encode is the message's body.
func (m *HintMessage) Encode() ([]byte, error) { return json.Marshal(m) }

// DecodeHints reads the body of a hint message, within its bounds.
func DecodeHints(body []byte) (*HintMessage, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	m := &HintMessage{}
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the object")
	}
	if n := len(m.Hints) + len(m.Withdrawn); n > MaxHintsAMessage {
		return nil, fmt.Errorf("%d hints in a message, expected at most %d", n, MaxHintsAMessage)
	}
	if life := time.Duration(m.Lifetime) * time.Millisecond; len(m.Hints) > 0 && (life < MinHintLifetime || life > MaxHintLifetime) {
		return nil, fmt.Errorf("a lifetime of %v, expected %v to %v", life, MinHintLifetime, MaxHintLifetime)
	}
	for _, list := range [...][]Hint{m.Hints, m.Withdrawn} {
		for i := range list {
			if h := &list[i]; len(h.Tags) > maxHintText || len(h.Tunnel) > maxHintText {
				return nil, fmt.Errorf("tags or tunnel longer than %d bytes", maxHintText)
			}
		}
	}
	return m, nil
}

// AcceptHints reads the body of a hint message that Accept has accepted. It leaves out hints about addresses that aren't the host's, and returns
// their number: a host may have an address that the configuration doesn't know.
func (t *Trust) AcceptHints(host string, body []byte) (m *HintMessage, foreign int, err error) {
	if m, err = DecodeHints(body); err != nil {
		return nil, 0, fmt.Errorf("hints of %s: %w", host, err)
	}
	other := func(h Hint) bool { return !t.Owns(host, h.Source) }
	before := len(m.Hints) + len(m.Withdrawn)
	m.Hints, m.Withdrawn = slices.DeleteFunc(m.Hints, other), slices.DeleteFunc(m.Withdrawn, other)
	return m, before - len(m.Hints) - len(m.Withdrawn), nil
}
