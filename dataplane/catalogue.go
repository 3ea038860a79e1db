package dataplane

import (
	"github.com/cnpgate/cnpgate/congestion"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// Counter numbers what a worker counts for each port. A counter belongs to the port where the thing happened: reception, border
// policy and MAC control to the port the frame came in by, full queues and marks to the port it was to leave by, notifications
// to the port they leave by, or would have. Every received frame ends in exactly one of TxPackets of the peer, a drop, consumed,
// or a queue.
type Counter uint8

// The counters of a port. The three groups at the end have one counter a congestion.Format, packet.Notification and Suppression.
const (
	RxPackets Counter = iota
	RxBytes
	TxPackets
	TxBytes
	ConsumedMACControl
	DroppedQueueOctets
	DroppedQueueFrames
	DroppedBorderIn
	DroppedBorderOut
	DroppedShutdown
	DroppedUnusable
	DroppedTooLong // this and the next two: in the order of burst.Cause
	DroppedLinkDown
	DroppedRefused
	ECNMarked
	CEReceived
	FastCNPTraceTooLong
	SentFirst
	ReceivedFirst   = SentFirst + Counter(congestion.Formats)
	SuppressedFirst = ReceivedFirst + Counter(packet.ProxyNotification)
	Counters        = SuppressedFirst + Counter(Suppressions)
)

// Info says what a counter is called: a metric's name without its prefix, a label with its value where it is one of several, and
// help that names what an RDMA NIC or a switch calls the same thing.
type Info struct{ Name, Label, Value, Help string }

const (
	droppedName = "dropped_packets_total"
	droppedHelp = "Received frames that were not forwarded. SONiC: SAI_QUEUE_STAT_DROPPED_PACKETS for a full queue."
)

// Catalogue describes every counter.
var Catalogue = catalogue()

func catalogue() (c [Counters]Info) {
	c = [Counters]Info{
		RxPackets:          {Name: "received_packets_total", Help: "Frames received. SONiC: RX_OK."},
		RxBytes:            {Name: "received_bytes_total", Help: "Octets of frames received, without FCS."},
		TxPackets:          {Name: "forwarded_packets_total", Help: "Received frames that left by this port. SONiC: TX_OK, less notifications."},
		TxBytes:            {Name: "forwarded_bytes_total", Help: "Octets of received frames that left by this port, without FCS."},
		ConsumedMACControl: {"consumed_packets_total", "reason", "mac-control", "Received frames that end at the gateway: PAUSE and PFC stay on their link."},
		DroppedQueueOctets: {droppedName, "reason", "queue-full-bytes", droppedHelp},
		DroppedQueueFrames: {droppedName, "reason", "queue-full-frames", droppedHelp},
		DroppedBorderIn:    {droppedName, "reason", "border-in", droppedHelp},
		DroppedBorderOut:   {droppedName, "reason", "border-out", droppedHelp},
		DroppedShutdown:    {droppedName, "reason", "shutdown", droppedHelp},
		DroppedUnusable:    {droppedName, "reason", "longer-than-buffer", droppedHelp},
		DroppedTooLong:     {droppedName, "reason", "longer-than-mtu", droppedHelp},
		DroppedLinkDown:    {droppedName, "reason", "link-down", droppedHelp},
		DroppedRefused:     {droppedName, "reason", "refused-by-device", droppedHelp},
		ECNMarked: {Name: "queue_ecn_marked_packets_total",
			Help: "Packets that got CE in this port's queue. SONiC: SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS."},
		CEReceived: {Name: "roce_ce_received_packets_total",
			Help: "RoCEv2 packets that came in with CE. mlx5 receiver: np_ecn_marked_roce_packets."},
		FastCNPTraceTooLong: {Name: "notifications_fast_cnp_trace_too_long_total",
			Help: "Fast CNPs that went out with option 1, as the data packet's IOAM trace is too long for option 2."},
	}
	for f := range congestion.Formats {
		c[SentFirst+Counter(f)] = Info{"notifications_sent_total", "kind", congestion.Format(f).String(),
			"Notifications sent. mlx5 receiver: np_cnp_sent."}
	}
	for n := range uint8(packet.ProxyNotification) {
		c[ReceivedFirst+Counter(n)] = Info{"notifications_received_total", "kind", packet.Notification(n + 1).String(),
			"CNPs and notifications of others that came in, and are forwarded. mlx5 sender: rp_cnp_handled."}
	}
	for s := range Suppressions {
		c[SuppressedFirst+Counter(s)] = Info{"notifications_suppressed_total", "reason", (s + 1).String(),
			"Times that a sender was not notified of congestion above K_max."}
	}
	return c
}

// IsDrop tells whether the counter counts frames that were not forwarded.
func (c Counter) IsDrop() bool { return Catalogue[c].Name == droppedName }
