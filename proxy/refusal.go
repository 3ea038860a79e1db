package proxy

import "github.com/cnpgate/cnpgate/cnpdec"

// Refusal is why a proxy does nothing about a notification to it.
type Refusal uint8

const (
	Accepted          Refusal = iota
	UntrustedSource           // its source isn't in the access list
	SourceLimit               // its source has sent too many, and all sources together have not
	SourcesFull               // there is no place to count for its source; other sources use them all
	ReceiveLimit              // all sources together have sent too many
	Malformed                 // its length, five-tuple or IPv6 options are invalid
	WrongAddress              // one of its addresses isn't a host's
	WrongChecksum             // the IPv4 or UDP checksum is wrong
	FiveTupleMismatch         // the five-tuple isn't that of the invoking packet
	NotRoCEv2                 // the invoking packet isn't RoCEv2: ECN is all that its sender has
	NoQP                      // the invoking packet ends before its QP
	NotData                   // the invoking packet carries no data, so it can't be the cause of congestion
	ManagementQP              // the invoking packet is for QP 0 or 1, which have no rate
	FlowUnknown               // no data of the flow passes this gateway
	Ambiguous                 // it has no tags, and data of several such flows passes this gateway, in different VLANs or tunnels
	WrongSide                 // its source can't be behind the port that it arrived by
	refusalsEnd
)

// Refusals is the number of refusals; they are 1 to Refusals.
const Refusals = refusalsEnd - 1

var refusalNames = [refusalsEnd]string{"accepted", "untrusted-source", "source-limit", "sources-full", "receive-limit", "malformed", "wrong-address",
	"wrong-checksum", "five-tuple-mismatch", "not-rocev2", "no-qp", "not-data", "management-qp", "flow-unknown", "ambiguous", "wrong-side"}

// String is the refusal's name in reports and metrics.
func (r Refusal) String() string {
	if r >= refusalsEnd {
		return "unknown"
	}
	return refusalNames[r]
}

// refusals are the refusals for the reasons of a decoder. Reasons that a notification to a proxy never has count as Malformed.
var refusals = func() (of [cnpdec.Reasons]Refusal) {
	for reason := range of {
		of[reason] = Malformed
	}
	of[cnpdec.Accepted] = Accepted
	of[cnpdec.WrongAddress] = WrongAddress
	of[cnpdec.WrongChecksum] = WrongChecksum
	of[cnpdec.FiveTupleMismatch] = FiveTupleMismatch
	return of
}()
