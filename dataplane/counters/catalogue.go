// Package counters numbers what a worker counts for each port, and says by which metric of package telemetry it is read. It also has the
// reasons for which a sender is not notified.
package counters

import (
	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/dataplane/pacing"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/proxy"
	"github.com/cnpgate/cnpgate/telemetry"
)

// Counter numbers what a worker counts for each port: a metric of package telemetry, or one value of its label. Every received frame ends
// in exactly one of TxPackets of the peer, a drop, consumed, or a queue.
type Counter uint8

// The counters of a port. The groups at the end have one counter for each congestion.Cause, packet.Notification (four groups),
// proxy.Refusal, Suppression, cnpdec.Ask and Unenforced.
const (
	RxPackets Counter = iota
	RxBytes
	TxPackets
	TxBytes
	ConsumedMACControl
	ConsumedTapped
	ConsumedSTAMP // this and those up to DroppedToGateway: in the order of host.Verdict
	ConsumedARP
	ConsumedND
	ConsumedEcho
	ConsumedParameterProblem
	ConsumedProxyNotification
	DroppedToGateway
	DroppedQueueOctets
	DroppedQueueFrames
	DroppedDomainIn
	DroppedDomainOut
	DroppedDomainUnclassifiedIn
	DroppedDomainUnclassifiedOut
	DroppedShutdown // this and those up to DroppedRefused: not by a worker that has the frame
	DroppedUnusable
	DroppedUnfinished
	DroppedTooLong // this and the next two: in the order of burst.Cause
	DroppedLinkDown
	DroppedRefused
	DroppedPFCWatchdog
	DroppedPacing
	ECNMarked
	ECNObserved
	CEReceived
	CECleared
	FastCNPTraceTooLong
	FastCNPRefused
	SendersFull
	SendersUnresponsive
	RTTRefused
	STAMPSentFirst // test packets; this and the next four: in the order of host.Verdict
	STAMPReplySent
	AnswersSentFirst // to ARP
	AnswersNDSent
	AnswersEchoSent
	AnswersLimited // this and the next four: in the order of host.Event
	AnswersNoPlace
	STAMPReplyLimit
	STAMPNoPlace
	AddressConflicts
	STAMPNotSent
	AnswersNotSent
	ProxyAccepted
	PacedPackets
	PacedTooMany
	PaceReductions
	PaceReductionsMissed
	TriggeredFirst
	SentFirst       = TriggeredFirst + Counter(congestion.Causes)
	ObservedFirst   = SentFirst + Counter(packet.SentNotifications)
	ReceivedFirst   = ObservedFirst + Counter(packet.SentNotifications)
	SuppressedFirst = ProxyTranslatedFirst + Counter(packet.SenderNotifications)

	ProxyRefusedFirst    = ReceivedFirst + Counter(packet.ReceivedNotifications)
	ProxyTranslatedFirst = ProxyRefusedFirst + Counter(proxy.Refusals)
	EnforcedFirst        = SuppressedFirst + Counter(Suppressions)
	UnenforcedFirst      = EnforcedFirst + Counter(cnpdec.Asks)
	DomainObservedFirst  = UnenforcedFirst + Counter(pacing.Unenforceds) // in the order of DroppedDomainIn and the three after it
	Counters             = DomainObservedFirst + borderReasons
)

const borderReasons = DroppedDomainUnclassifiedOut - DroppedDomainIn + 1

// Info is a counter's metric, and the value of its label, "" if it has none.
type Info struct {
	*telemetry.Metric
	Value string
}

// Catalogue describes every counter.
var Catalogue = catalogue()

func catalogue() (c [Counters]Info) {
	c = [Counters]Info{
		RxPackets:                    {telemetry.ReceivedPackets, ""},
		RxBytes:                      {telemetry.ReceivedBytes, ""},
		TxPackets:                    {telemetry.ForwardedPackets, ""},
		TxBytes:                      {telemetry.ForwardedBytes, ""},
		ConsumedMACControl:           {telemetry.ConsumedPackets, "mac-control"},
		ConsumedParameterProblem:     {telemetry.ConsumedPackets, "icmpv6-parameter-problem"},
		ConsumedARP:                  {telemetry.ConsumedPackets, "arp"},
		ConsumedND:                   {telemetry.ConsumedPackets, "neighbor-solicitation"},
		ConsumedEcho:                 {telemetry.ConsumedPackets, "echo"},
		ConsumedProxyNotification:    {telemetry.ConsumedPackets, "proxy-notification"},
		ConsumedTapped:               {telemetry.ConsumedPackets, "tapped"},
		DroppedToGateway:             {telemetry.DroppedPackets, "to-gateway"},
		DroppedQueueOctets:           {telemetry.DroppedPackets, "queue-full-bytes"},
		DroppedQueueFrames:           {telemetry.DroppedPackets, "queue-full-frames"},
		DroppedDomainIn:              {telemetry.DroppedPackets, "border-in"},
		DroppedDomainOut:             {telemetry.DroppedPackets, "border-out"},
		DroppedDomainUnclassifiedIn:  {telemetry.DroppedPackets, "border-unclassified-in"},
		DroppedDomainUnclassifiedOut: {telemetry.DroppedPackets, "border-unclassified-out"},
		DroppedShutdown:              {telemetry.DroppedPackets, "shutdown"},
		DroppedUnusable:              {telemetry.DroppedPackets, "longer-than-buffer"},
		DroppedUnfinished:            {telemetry.DroppedPackets, "unfinished-offload"},
		DroppedTooLong:               {telemetry.DroppedPackets, "longer-than-mtu"},
		DroppedLinkDown:              {telemetry.DroppedPackets, "link-down"},
		DroppedRefused:               {telemetry.DroppedPackets, "refused-by-device"},
		DroppedPFCWatchdog:           {telemetry.DroppedPackets, "pfc-watchdog"},
		DroppedPacing:                {telemetry.DroppedPackets, "pacing-full"},
		ECNMarked:                    {telemetry.ECNMarkedPackets, ""},
		ECNObserved:                  {telemetry.ECNObservedPackets, ""},
		CEReceived:                   {telemetry.CEReceivedPackets, ""},
		CECleared:                    {telemetry.CEClearedPackets, ""},
		FastCNPTraceTooLong:          {telemetry.FastCNPTraceTooLong, ""},
		ConsumedSTAMP:                {telemetry.ConsumedPackets, "stamp"},
		STAMPSentFirst:               {telemetry.STAMPSent, "test"},
		STAMPReplySent:               {telemetry.STAMPSent, "reply"},
		STAMPReplyLimit:              {telemetry.STAMPUnsent, "reply-limit"},
		STAMPNoPlace:                 {telemetry.STAMPUnsent, "no-place"},
		STAMPNotSent:                 {telemetry.STAMPUnsent, "not-sent"},
		AnswersSentFirst:             {telemetry.AnswersSent, "arp"},
		AnswersNDSent:                {telemetry.AnswersSent, "neighbor-advertisement"},
		AnswersEchoSent:              {telemetry.AnswersSent, "echo-reply"},
		AnswersLimited:               {telemetry.AnswersUnsent, "limit"},
		AnswersNoPlace:               {telemetry.AnswersUnsent, "no-place"},
		AnswersNotSent:               {telemetry.AnswersUnsent, "not-sent"},
		AddressConflicts:             {telemetry.AddressConflicts, ""},
		ProxyAccepted:                {telemetry.ProxyAccepted, ""},
		PacedPackets:                 {telemetry.PacedPackets, ""},
		PacedTooMany:                 {telemetry.PacedTooMany, ""},
		PaceReductions:               {telemetry.PaceReductions, ""},
		PaceReductionsMissed:         {telemetry.PaceReductionsMissed, ""},
		FastCNPRefused:               {telemetry.FastCNPRefused, ""},
	}
	c[RTTRefused] = Info{telemetry.RTTRefused, ""}
	c[SendersUnresponsive] = Info{telemetry.SendersUnresponsive, ""}
	c[SendersFull] = Info{telemetry.SendersUnwatched, ""}
	for n := range congestion.Causes {
		c[TriggeredFirst+Counter(n)] = Info{telemetry.NotificationsTriggered, congestion.CauseName(n)}
	}
	for f := range packet.SentNotifications {
		c[ObservedFirst+Counter(f)] = Info{telemetry.NotificationsObserved, packet.Notification(f).String()}
		c[SentFirst+Counter(f)] = Info{telemetry.NotificationsSent, packet.Notification(f).String()}
	}
	for f := range packet.SenderNotifications {
		c[ProxyTranslatedFirst+Counter(f)] = Info{telemetry.ProxyTranslated, packet.Notification(f).String()}
	}
	for f := range packet.ReceivedNotifications {
		c[ReceivedFirst+Counter(f)] = Info{telemetry.NotificationsReceived, packet.Notification(f).Received().String()}
	}
	for r := range proxy.Refusals {
		c[ProxyRefusedFirst+Counter(r)] = Info{telemetry.ProxyRefused, (r + 1).String()}
	}
	for s := range Suppressions {
		c[SuppressedFirst+Counter(s)] = Info{telemetry.NotificationsSuppressed, (s + 1).String()}
	}
	for a := range cnpdec.Asks {
		c[EnforcedFirst+Counter(a)] = Info{telemetry.NotificationsEnforced, a.String()}
	}
	for u := range pacing.Unenforceds {
		c[UnenforcedFirst+Counter(u)] = Info{telemetry.NotificationsUnenforced, pacing.UnenforcedNames[u]}
	}
	for n := range borderReasons {
		c[DomainObservedFirst+n] = Info{telemetry.DomainObserved, c[DroppedDomainIn+n].Value}
	}
	return c
}
