package ospfv3

import (
	"encoding/binary"
	"fmt"

	"github.com/cnpgate/cnpgate/internal/igp/ospf"
)

// The encoder, with which tests check that decoding loses nothing. cnpgate sends no extended LSAs of OSPFv3.

// Append appends the body of an LSA: the reference of an E-Intra-Area-Prefix LSA, prefixes, then unknown TLVs.
func (l *LSA) Append(b []byte, lsaType uint16) ([]byte, error) {
	if lsaType == EIntraAreaPrefix {
		r := &l.Reference
		if !r.Router.Is4() {
			return nil, fmt.Errorf("%v is no Router ID; expected four octets", r.Router)
		}
		b = binary.BigEndian.AppendUint16(b, r.Reserved)
		b = binary.BigEndian.AppendUint16(b, r.Type)
		b = binary.BigEndian.AppendUint32(b, r.ID)
		b = append(b, r.Router.AsSlice()...)
	}
	for i := range l.Prefixes {
		value, err := l.Prefixes[i].value()
		if err != nil {
			return nil, fmt.Errorf("prefix %v: %w", l.Prefixes[i].Prefix, err)
		}
		if b, err = appendTLV(b, ospf.TLV{Type: uint16(l.Prefixes[i].TLV), Value: value}); err != nil {
			return nil, err
		}
	}
	for _, t := range l.Unknown {
		var err error
		if b, err = appendTLV(b, t); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (p *Prefix) value() ([]byte, error) {
	switch {
	case !p.Prefix.IsValid() || !p.Prefix.Addr().Is6():
		return nil, fmt.Errorf("it is no IPv6 prefix")
	case p.Metric > 0xffffff:
		return nil, fmt.Errorf("the metric %d has more than 24 bits", p.Metric)
	case p.TLV.String() == "":
		return nil, fmt.Errorf("TLV %d has no prefix", p.TLV)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(p.Upper)<<24|p.Metric)
	b = append(b, byte(p.Prefix.Bits()), p.Options)
	b = binary.BigEndian.AppendUint16(b, p.Unused)
	b = append(b, p.Prefix.Masked().Addr().AsSlice()[:addressLen(p.Prefix.Bits())]...)
	return p.Append(b, ospf.V3)
}

func appendTLV(b []byte, t ospf.TLV) ([]byte, error) {
	if len(t.Value) > 1<<16-1 {
		return nil, fmt.Errorf("TLV %d has %d octets; expected at most 65535", t.Type, len(t.Value))
	}
	return ospf.AppendTLV(b, t), nil
}
