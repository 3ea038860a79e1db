package cnpdec

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// decodeCNP reads a CNP of any format (IBTA Annex A17): UDP, BTH, the format's fields, ICRC.
func (r *Receiver) decodeCNP(frame []byte, p *packet.Parsed, n *Notification) Reason {
	if reason := decodeUDP(frame[n.Start:n.End], n); reason != Accepted {
		return reason
	}
	n.Body = frame[p.Ext():p.ICRC]
	if !n.lengthOK(p.BTHFlags) {
		return WrongLength
	}
	if !r.icrcOK(frame, p, n) {
		return WrongICRC
	}
	n.BTH = packet.DecodeBTH(frame[p.BTH:])
	if reason := r.checkBTH(n); reason != Accepted {
		return reason
	}
	switch n.Kind {
	case FastCNP:
		return r.decodeFastCNP(frame, p, n)
	case LongHaulCNP:
		return r.decodeLongHaulCNP(n)
	case PPFC:
		return r.decodePPFC(n)
	}
	if r.KnownQP != nil && !r.KnownQP(n.BTH.DestQP) {
		return UnknownQP
	}
	return Accepted
}

// lengthOK reports whether the part between BTH and ICRC has the length of the format. An extension that the receiver doesn't support may
// have any length.
func (n *Notification) lengthOK(flags uint8) bool {
	switch n.Kind {
	case LongHaulCNP:
		return longHaulLengthOK(len(n.Body))
	case PPFC:
		return len(n.Body) == packet.PPFCLen(n.Family)
	case StandardCNP:
		return len(n.Body) == packet.CNPReservedLen || flags&packet.ExtensionBit != 0
	}
	return len(n.Body) == packet.CNPReservedLen
}

// icrcOK verifies the ICRC, both ways if the receiver accepts both, and records which one is right.
func (r *Receiver) icrcOK(frame []byte, p *packet.Parsed, n *Notification) bool {
	l3, bth, icrc := int(p.L3), int(p.BTH), int(p.ICRC)
	got := binary.LittleEndian.Uint32(frame[icrc:])
	if r.ICRC != ICRCWithoutExtensionHeaders && got == packet.ICRC(frame, l3, bth, icrc, true) {
		n.ICRC = ICRCAsSent
		return true
	}
	if r.ICRC != ICRCAsSent && got == packet.ICRC(frame, l3, bth, icrc, false) {
		n.ICRC = ICRCWithoutExtensionHeaders
		return true
	}
	return false
}

// checkBTH checks a CNP's BTH (IBTA Annex A17, draft-tian 6.2.3). It ignores reserved bits, including ExtensionBit if the receiver doesn't
// support it. MigReq is the connection's state, and RNICs were seen to send it in other packets, so only the new formats require 0.
func (r *Receiver) checkBTH(n *Notification) Reason {
	h := &n.BTH
	if h.SE || h.PadCount != 0 || h.Flags&packet.FECN != 0 || h.Flags&packet.BECN == 0 || h.AckReq || h.PSN != 0 {
		return WrongBTH
	}
	if h.MigReq && (n.Kind == LongHaulCNP || n.Kind == PPFC) {
		return WrongBTH
	}
	if !packet.ValidPKey(h.PKey) || h.PKey != packet.DefaultPKey && r.KnownPKey != nil && !r.KnownPKey(h.PKey) {
		return UnknownPKey
	}
	return Accepted
}
