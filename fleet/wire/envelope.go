// Package wire is the encoding of what the members of a fleet send each other: a signed envelope around a body that is a list of records.
//
//	0   2         3      4         5        5+n      13+n   21+n      end-64
//	+---+---------+------+---------+--------+----------+------+---------+-----------+
//	|CF | version | kind | n, 1-32 | sender | sequence | time | body    | signature |
//	+---+---------+------+---------+--------+----------+------+---------+-----------+
//
// Numbers are in network byte order. The signature is Ed25519, by the sender's key, over a prefix that names the site, and all that precedes
// the signature. So neither a broker nor another member can speak for the sender, and no message can be moved to another site. Every decoder
// is bounded by MaxMessage, and refuses bytes that it doesn't know.
package wire

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
)

// Version is the version of the encoding. A member ignores messages of another version, and counts them.
const Version = 1

const (
	// MaxMessage is the largest message, bytes: below the 1 MiB that a nats-server accepts by default.
	MaxMessage = 256 << 10
	// MaxName is the longest name of a site, a gateway or a host.
	MaxName = 32

	fixed   = 5 + 8 + 8 // without the name
	sigSize = ed25519.SignatureSize
	// MaxBody is the largest body.
	MaxBody = MaxMessage - fixed - MaxName - sigSize
)

// Kind is what a message's body has.
type Kind uint8

const (
	Status   Kind = 1 + iota // of a gateway: JSON, once a second
	Want                     // pairs of hosts whose flows a gateway wants to know: Wanted
	Flows                    // flows that a gateway sees: Flow
	Pairs                    // confirmed pairs: Pair
	Notified                 // senders that a gateway has notified: Notice
	Arrivals                 // what arrives at a bottleneck that gateways share: Arrival
	Learned                  // delays and limits that a gateway has learned: Delay
	Hints                    // of a host: JSON
	Ask                      // a request of one gateway to another: JSON
	Answer                   // and its answer: JSON
	Episode                  // a congestion episode: JSON
	Snapshot                 // a part of the answer to a gateway that starts: Part
	kindsEnd
)

// Kinds is the number of kinds, plus one.
const Kinds = int(kindsEnd)

// String is the kind's name, which is also the last token of its subject.
func (k Kind) String() string {
	if k == 0 || k >= kindsEnd {
		return "unknown"
	}
	return [...]string{"", "status", "want", "flows", "pairs", "notified", "arrivals", "learned", "hints", "ask", "answer", "episode", "snapshot"}[k]
}

// Header is what precedes a body.
type Header struct {
	Kind   Kind
	Sender string // a gateway or a host
	// Sequence grows with each message of the sender, from a start above all that it has sent before, such as the time in ns. Receivers ignore
	// a message whose number isn't above the last one's.
	Sequence uint64
	// Time is when the message was sent, ns of the sender's clock. It only shows how the clocks differ: lifetimes count from arrival.
	Time int64
}

// Errors of Open.
var (
	ErrLength    = errors.New("message too short or too long")
	ErrVersion   = errors.New("another version of the encoding")
	ErrKind      = errors.New("unknown kind of message")
	ErrName      = errors.New("a name has other characters than a-z, 0-9 and -")
	ErrSignature = errors.New("the signature is not the sender's")
)

// ValidName reports whether a name can be a token of a subject: 1 to 32 of a-z, 0-9 and -.
func ValidName(s string) bool {
	if len(s) == 0 || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Seal makes a message: envelope, body and signature. sign signs with the sender's key (nkeys.KeyPair.Sign).
func Seal(site string, h Header, body []byte, sign func([]byte) ([]byte, error)) ([]byte, error) {
	if !ValidName(h.Sender) || !ValidName(site) {
		return nil, ErrName
	}
	if len(body) > MaxBody {
		return nil, fmt.Errorf("body of %d bytes: %w, expected at most %d", len(body), ErrLength, MaxBody)
	}
	lead := prefix(site)
	b := make([]byte, 0, len(lead)+fixed+len(h.Sender)+len(body)+sigSize)
	b = append(b, lead...)
	b = append(b, 'C', 'F', Version, uint8(h.Kind), uint8(len(h.Sender)))
	b = append(b, h.Sender...)
	b = binary.BigEndian.AppendUint64(b, h.Sequence)
	b = binary.BigEndian.AppendUint64(b, uint64(h.Time))
	b = append(b, body...)
	signature, err := sign(b)
	if err != nil {
		return nil, err
	}
	return append(b, signature...)[len(lead):], nil
}

// prefix is signed in front of a message, so that the signature is valid for this purpose and at this site only.
func prefix(site string) string { return "cnpgate fleet " + site + "\x00" }

// Open reads a message's envelope; the signature is not checked. body is part of b.
func Open(b []byte) (h Header, body []byte, err error) {
	if len(b) < fixed+1+sigSize || len(b) > MaxMessage {
		return h, nil, ErrLength
	}
	n := int(b[4])
	switch {
	case b[0] != 'C' || b[1] != 'F' || b[2] != Version:
		return h, nil, ErrVersion
	case b[3] == 0 || b[3] >= uint8(kindsEnd):
		return h, nil, ErrKind
	case n == 0 || n > MaxName || len(b) < fixed+n+sigSize:
		return h, nil, ErrLength
	}
	h.Kind, h.Sender = Kind(b[3]), string(b[5:5+n])
	if !ValidName(h.Sender) {
		return h, nil, ErrName
	}
	h.Sequence, h.Time = binary.BigEndian.Uint64(b[5+n:]), int64(binary.BigEndian.Uint64(b[13+n:]))
	return h, b[21+n : len(b)-sigSize], nil
}

// Verify checks the signature of a message that Open has accepted.
func Verify(site string, b []byte, key ed25519.PublicKey) error {
	if len(b) < sigSize || len(key) != ed25519.PublicKeySize {
		return ErrLength
	}
	signed := append([]byte(prefix(site)), b[:len(b)-sigSize]...)
	if !ed25519.Verify(key, signed, b[len(b)-sigSize:]) {
		return ErrSignature
	}
	return nil
}
