package cnpdec

import (
	"encoding/binary"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// readStandardCNP reads a CNP without fields (IBTA Annex A17). An extension that the receiver doesn't support may have any length.
func (r *Receiver) readStandardCNP(frame []byte, p *packet.Parsed, n *Notification) Reason {
	n.Body = frame[p.Ext():p.ICRC]
	if reason := r.readCNP(frame, p, n, len(n.Body) == packet.CNPReservedLen || p.BTHFlags&packet.ExtensionBit != 0); reason != Accepted {
		return reason
	}
	if r.KnownQP != nil && !r.KnownQP(n.BTH.DestQP) {
		return UnknownQP
	}
	n.Asks.Receiver, n.Asks.QP, n.Asks.SendersQP = n.Src, n.BTH.DestQP, true
	return Accepted
}

// readPPFC reads a PPFC notification (draft-xz-ppfc 3). DestQP and the congested destination identify the flow.
func (r *Receiver) readPPFC(frame []byte, p *packet.Parsed, n *Notification) Reason {
	body := frame[p.Ext():p.ICRC]
	if reason := r.readCNP(frame, p, n, len(body) == packet.PPFCLen(n.Family)); reason != Accepted {
		return reason
	}
	n.PPFC = packet.DecodePPFC(body, n.Family)
	if n.PPFC.PT > packet.PTResume {
		return UnknownPauseType
	}
	if impostor(n.Family, n.PPFC.Dst) {
		return WrongAddress
	}
	n.Asks.Ask, n.Asks.Parameter = Pause, n.PPFC.Duration
	if n.PPFC.PT == packet.PTResume {
		n.Asks.Ask = EndPause
	}
	return r.knownFlow(n, n.PPFC.Dst)
}

// knownFlow checks the flow that a CNP names by the congested destination and its QP.
func (r *Receiver) knownFlow(n *Notification, dst packet.Addr) Reason {
	if r.KnownFlow != nil && !r.KnownFlow(dst, n.BTH.DestQP) {
		return UnknownFlow
	}
	n.Asks.Receiver, n.Asks.QP = dst, n.BTH.DestQP
	return Accepted
}

// readCNP reads what all CNPs have (IBTA Annex A17): UDP, BTH, ICRC. length: what is between BTH and ICRC has the length of the kind's fields.
func (r *Receiver) readCNP(frame []byte, p *packet.Parsed, n *Notification, length bool) Reason {
	if reason := decodeUDP(frame[n.Start:n.End], n); reason != Accepted {
		return reason
	}
	if !length {
		return WrongLength
	}
	if !r.icrcOK(frame, p, n) {
		return WrongICRC
	}
	n.BTH = packet.DecodeBTH(frame[p.BTH:])
	return r.checkBTH(n)
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
	if h.MigReq && n.Kind.Extended() {
		return WrongBTH
	}
	if !packet.ValidPKey(h.PKey) {
		return UnknownPKey
	}
	return Accepted
}
