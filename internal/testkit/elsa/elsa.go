// Package elsa encodes what package ospfv3 decodes, for tests. cnpgate originates no OSPFv3 LSAs.
package elsa

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv3"
)

// Body is the body of an LSA: the reference of an E-Intra-Area-Prefix LSA, prefixes, then unknown TLVs.
func Body(l *ospfv3.LSA, lsaType uint16) (b []byte, err error) {
	if lsaType == ospfv3.EIntraAreaPrefix {
		r := &l.Reference
		b = binary.BigEndian.AppendUint16(b, r.Reserved)
		b = binary.BigEndian.AppendUint16(b, r.Type)
		b = binary.BigEndian.AppendUint32(b, r.ID)
		b = append(b, r.Router.AsSlice()...)
	}
	for i := range l.Prefixes {
		p := &l.Prefixes[i]
		value := binary.BigEndian.AppendUint32(nil, uint32(p.Upper)<<24|p.Metric)
		value = append(value, byte(p.Prefix.Bits()), p.Options)
		value = binary.BigEndian.AppendUint16(value, p.Unused)
		value = append(value, p.Prefix.Addr().AsSlice()[:(p.Prefix.Bits()+31)/32*4]...)
		if value, err = p.Append(value, ospf.V3); err != nil {
			return nil, err
		}
		b = ospf.AppendTLV(b, ospf.TLV{Type: uint16(p.TLV), Value: value})
	}
	for _, t := range l.Unknown {
		b = ospf.AppendTLV(b, t)
	}
	return b, nil
}
