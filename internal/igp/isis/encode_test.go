package isis

import (
	"encoding/binary"
	"fmt"

	"github.com/cnpgate/cnpgate/internal/igp/fletcher"
)

// The encoder, with which tests check that decoding loses nothing. cnpgate sends no LSPs.

// Append appends the LSP, without an LLC header. It calculates the checksum and ignores l.Checksum.
func (l *LSP) Append(b []byte) ([]byte, error) {
	start := len(b)
	b = append(b, discriminator, headerLen, version, 0, byte(l.Type), version, 0, l.MaxAreas, 0, 0)
	b = binary.BigEndian.AppendUint16(b, l.Lifetime)
	b = append(b, l.ID[:]...)
	b = binary.BigEndian.AppendUint32(b, l.Sequence)
	b = append(b, 0, 0, l.Flags)
	b, err := l.appendTLVs(b)
	if err != nil {
		return nil, err
	}
	if len(b)-start > 1<<16-1 {
		return nil, fmt.Errorf("an LSP has %d octets; expected at most 65535", len(b)-start)
	}
	binary.BigEndian.PutUint16(b[start+8:], uint16(len(b)-start))
	binary.BigEndian.PutUint16(b[start+checksumAt:], fletcher.Sum(b[start+lspIDAt:], checksumAt-lspIDAt))
	return b, nil
}

// appendTLVs appends router IDs, unknown TLVs, and the prefixes, of which those with the same TLV and topology share a TLV if they are
// neighbours and fit.
func (l *LSP) appendTLVs(b []byte) (_ []byte, err error) {
	if l.RouterIDs.IPv4.IsValid() {
		if b, err = appendTLV(b, TLV{te4RouterID, l.RouterIDs.IPv4.AsSlice()}); err != nil {
			return nil, err
		}
	}
	if l.RouterIDs.IPv6.IsValid() {
		if b, err = appendTLV(b, TLV{te6RouterID, l.RouterIDs.IPv6.AsSlice()}); err != nil {
			return nil, err
		}
	}
	for _, t := range l.Unknown {
		if b, err = appendTLV(b, t); err != nil {
			return nil, err
		}
	}
	for i := 0; i < len(l.Prefixes); { // each round consumes at least one prefix
		var value []byte
		first := &l.Prefixes[i]
		if first.TLV == MTIPReach || first.TLV == MTIPv6Reach {
			value = binary.BigEndian.AppendUint16(value, first.Topology)
		}
		start := i
		for ; i < len(l.Prefixes) && l.Prefixes[i].TLV == first.TLV && l.Prefixes[i].Topology == first.Topology; i++ {
			entry, err := l.Prefixes[i].append(nil)
			if err != nil {
				return nil, fmt.Errorf("prefix %v: %w", l.Prefixes[i].Prefix, err)
			}
			if i > start && len(value)+len(entry) > 255 {
				break
			}
			value = append(value, entry...)
		}
		if b, err = appendTLV(b, TLV{first.TLV, value}); err != nil {
			return nil, fmt.Errorf("prefix %v: %w", first.Prefix, err)
		}
	}
	return b, nil
}

func appendTLV(b []byte, t TLV) ([]byte, error) {
	if len(t.Value) > 255 {
		return nil, fmt.Errorf("TLV %d has %d octets; expected at most 255", t.Type, len(t.Value))
	}
	return append(append(b, t.Type, byte(len(t.Value))), t.Value...), nil
}

// append appends the prefix as in its TLV.
func (p *Prefix) append(b []byte) ([]byte, error) {
	six := p.isIPv6()
	switch {
	case !six && p.TLV != IPReach && p.TLV != MTIPReach:
		return nil, fmt.Errorf("TLV %d has no prefix; expected 135, 235, 236 or 237", p.TLV)
	case !p.Prefix.IsValid() || p.Prefix.Addr().Is6() != six:
		return nil, fmt.Errorf("it doesn't belong into TLV %d", p.TLV)
	case p.Source4.IsValid() && !p.Source4.Is4() || p.Source6.IsValid() && !p.Source6.Is6():
		return nil, fmt.Errorf("its source router IDs %v and %v are of the wrong family", p.Source4, p.Source6)
	}
	sub, err := p.subTLVs()
	if err != nil {
		return nil, err
	}
	bits, present := p.Prefix.Bits(), len(sub) > 0 || p.empty
	control := bit(p.Down, controlDown)
	if six {
		control |= bit(p.External, control6External) | bit(present, control6SubTLVs) | p.Reserved&control6Reserved
	} else {
		control |= bit(present, control4SubTLVs) | byte(bits)
	}
	b = append(binary.BigEndian.AppendUint32(b, p.Metric), control)
	if six {
		b = append(b, byte(bits))
	}
	b = append(b, p.Prefix.Masked().Addr().AsSlice()[:(bits+7)/8]...)
	if !present {
		return b, nil
	}
	return append(append(b, byte(len(sub))), sub...), nil
}

func bit(set bool, mask byte) byte {
	if set {
		return mask
	}
	return 0
}

// subTLVs encodes the sub-TLVs.
func (p *Prefix) subTLVs() (b []byte, err error) {
	var all []TLV
	if p.Attributes != nil {
		all = append(all, TLV{flagsType, p.Attributes})
	}
	if p.Source4.IsValid() {
		all = append(all, TLV{source4Type, p.Source4.AsSlice()})
	}
	if p.Source6.IsValid() {
		all = append(all, TLV{source6Type, p.Source6.AsSlice()})
	}
	for _, t := range append(all, p.Unknown...) {
		if b, err = appendTLV(b, t); err != nil {
			return nil, err
		}
	}
	if len(b) > 255 {
		return nil, fmt.Errorf("its sub-TLVs have %d octets; expected at most 255", len(b))
	}
	return b, nil
}
