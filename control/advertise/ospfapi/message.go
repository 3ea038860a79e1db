package ospfapi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/cnpgate/cnpgate/internal/igp/ospf"
)

// A message has a header of eight octets: version, type, length of the body (16 bits), sequence number (32 bits), all big endian
// (FRRouting, ospfd/ospf_api.h).
const (
	apiVersion = 1
	headerLen  = 8
	maxBody    = 1<<16 - 1
)

// Types of messages to ospfd.
const (
	registerOpaqueType = 1
	registerEvent      = 3
	syncLSDB           = 4
	originateRequest   = 5
	deleteRequest      = 6
	syncReachable      = 7
)

// Types of messages from ospfd.
const (
	reply           = 10
	readyNotify     = 11
	lsaUpdate       = 12
	lsaDelete       = 13
	reachableChange = 18
)

var requestNames = map[uint8]string{registerOpaqueType: "register opaque type", registerEvent: "register event", syncLSDB: "sync LSDB",
	originateRequest: "originate", deleteRequest: "delete", syncReachable: "sync reachable routers"}

// message is a message of the API.
type message struct {
	kind     uint8
	sequence uint32
	body     []byte
}

// append appends the message; its body has at most maxBody octets.
func (m *message) append(b []byte) []byte {
	b = append(b, apiVersion, m.kind)
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.body)))
	b = binary.BigEndian.AppendUint32(b, m.sequence)
	return append(b, m.body...)
}

// readMessage reads a message. A body has at most maxBody octets, so what a server can make the gateway allocate is bounded.
func readMessage(r io.Reader) (m message, err error) {
	var header [headerLen]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return message{}, err
	}
	if header[0] != apiVersion {
		return message{}, fmt.Errorf("ospfd speaks version %d of its API; expected %d", header[0], apiVersion)
	}
	m = message{kind: header[1], sequence: binary.BigEndian.Uint32(header[4:]), body: make([]byte, binary.BigEndian.Uint16(header[2:]))}
	if _, err := io.ReadFull(r, m.body); err != nil {
		return message{}, fmt.Errorf("ospfd's message %d ends early: %w", m.kind, err)
	}
	return m, nil
}

// refusal is an error that ospfd replies.
type refusal int8

// Refusals that the client handles. The others are in refusals.
const (
	noSuchLSA = refusal(-3)
	inUse     = refusal(-5)
	notReady  = refusal(-7)
)

var refusals = map[refusal]string{-1: "no such interface", -2: "no such area", noSuchLSA: "no such LSA", -4: "illegal LSA type",
	inUse: "another client of its API has registered extended prefix LSAs of AS scope; stop that client", -6: "opaque type not registered",
	notReady: "no neighbour takes opaque LSAs", -8: "no memory", -9: "error", -10: "undefined"}

// Error gives the reason in words.
func (r refusal) Error() string {
	if text := refusals[r]; text != "" {
		return text
	}
	return fmt.Sprintf("error %d", int8(r))
}

// checkReply returns the error that a reply to a request carries.
func checkReply(m *message, sequence uint32) error {
	switch {
	case m.kind != reply || len(m.body) < 1:
		return fmt.Errorf("ospfd sent message %d with %d octets instead of a reply", m.kind, len(m.body))
	case m.sequence != sequence:
		return fmt.Errorf("ospfd replied to request %d instead of %d", m.sequence, sequence)
	case m.body[0] != 0:
		return refusal(m.body[0])
	}
	return nil
}

// filter is the body of registerEvent and syncLSDB: LSAs of these types, of any origin and area.
func filter(types ...uint8) []byte {
	const anyOrigin = 2
	var mask uint16
	for _, t := range types {
		mask |= 1 << t
	}
	return append(binary.BigEndian.AppendUint16(nil, mask), anyOrigin, 0)
}

// originate is the body of originateRequest for an LSA of AS scope: interface and area are 0.
func originate(l *ospf.LSA) ([]byte, error) { return l.Append(make([]byte, 8)) }

// remove is the body of deleteRequest for an LSA of AS scope.
func remove(lsaType, opaqueType uint8, opaque uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0, lsaType, opaqueType, 0, 0}, opaque)
}

// change is an LSA that was added, replaced or removed.
type change struct {
	lsa        ospf.LSA
	where      [2]netip.Addr // interface of link scope, area of area scope
	originated bool          // by the ospfd of this API
}

// decodeChange decodes the body of lsaUpdate and lsaDelete: interface, area, whether ospfd originated the LSA, padding, LSA.
func decodeChange(body []byte) (c change, err error) {
	const lsaAt = 12
	if len(body) < lsaAt {
		return change{}, fmt.Errorf("ospfd sent an LSA in %d octets; expected at least %d", len(body), lsaAt)
	}
	c.where = [2]netip.Addr{netip.AddrFrom4([4]byte(body)), netip.AddrFrom4([4]byte(body[4:]))}
	c.originated = body[8] != 0
	if c.lsa, _, _, err = ospf.NextLSA(body[lsaAt:]); err != nil {
		return change{}, fmt.Errorf("ospfd sent an LSA that can't be read: %w", err)
	}
	return c, nil
}

// decodeReachable decodes the body of reachableChange: two numbers, as many routers that are reachable now, and that no longer are.
func decodeReachable(body []byte) (added, removed []netip.Addr, err error) {
	const routersAt, routerLen = 4, 4
	if len(body) < routersAt {
		return nil, nil, errors.New("ospfd sent a change of reachable routers without their numbers")
	}
	adds, removes := int(binary.BigEndian.Uint16(body)), int(binary.BigEndian.Uint16(body[2:]))
	body = body[routersAt:]
	if (adds+removes)*routerLen > len(body) {
		return nil, nil, fmt.Errorf("ospfd announced %d reachable and %d unreachable routers in %d octets", adds, removes, len(body))
	}
	for i := range adds + removes { // bounded by the body
		router := netip.AddrFrom4([4]byte(body[i*routerLen:]))
		if i < adds {
			added = append(added, router)
		} else {
			removed = append(removed, router)
		}
	}
	return added, removed, nil
}
