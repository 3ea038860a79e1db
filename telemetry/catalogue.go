package telemetry

// A counter belongs to the port where the event happened: reception, domain filter and MAC control to the ingress port, full queues and
// marks to the egress port, notifications to the port by which they leave or would have left.

// Received frames, and how each of them ended.
var (
	ReceivedPackets = declare(Metric{Name: "received_packets_total", Unit: Packets, Scope: Port, Side: In, SONiC: "RX_OK", OpenConfig: "in-pkts",
		Help: "Frames received by this port."})
	ReceivedBytes = declare(Metric{Name: "received_bytes_total", Unit: Bytes, Scope: Port, SONiC: "SAI_PORT_STAT_IF_IN_OCTETS", OpenConfig: "in-octets",
		Help: "Bytes of the frames received by this port."})
	ForwardedPackets = declare(Metric{Name: "forwarded_packets_total", Unit: Packets, Scope: Port, Side: Out, SONiC: "TX_OK", OpenConfig: "out-pkts",
		Help: "Received frames forwarded by this port, without notifications."})
	ForwardedBytes = declare(Metric{Name: "forwarded_bytes_total", Unit: Bytes, Scope: Port, SONiC: "SAI_PORT_STAT_IF_OUT_OCTETS", OpenConfig: "out-octets",
		Help: "Bytes of the received frames forwarded by this port."})
	DroppedPackets = declare(Metric{Name: "dropped_packets_total", Unit: Packets, Scope: Port, Label: "reason", Side: Out,
		SONiC: "SAI_QUEUE_STAT_DROPPED_PACKETS", OpenConfig: "dropped-pkts", Help: "Received frames that were not forwarded; SONiC counts only those dropped by a full queue."})
	DomainObserved = declare(Metric{Name: "domain_observed_packets_total", Unit: Packets, Scope: Port, Label: "reason",
		Help: "Frames that the domain filter would drop if domain.mode were not observe; they count as forwarded."})
	ConsumedPackets = declare(Metric{Name: "consumed_packets_total", Unit: Packets, Scope: Port, Label: "reason", Side: Out,
		Help: "Received frames that end at the gateway, such as PAUSE and PFC, which stay on their link."})
	QueuedPackets = declare(Metric{Name: "queued_packets", Kind: Gauge, Unit: Packets, Scope: Port, Side: Out,
		Help: "Received frames that wait in this port's queue."})
)

// Congestion of a port's queue. The limits are those of the current configuration.
var (
	QueueDepthBytes = declare(Metric{Name: "queue_depth_bytes", Kind: Gauge, Unit: Bytes, Scope: Queue,
		SONiC: "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES", Help: "Bytes that wait."})
	QueueWatermarkBytes = declare(Metric{Name: "queue_watermark_bytes", Kind: Gauge, Unit: Bytes, Scope: Queue,
		SONiC: "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", OpenConfig: "max-queue-len", Help: "The greatest queue depth so far."})
	QueueCapacityBytes = declare(Metric{Name: "queue_capacity_bytes", Kind: Gauge, Unit: Bytes, Scope: Port,
		Help: "Bytes that a class of the queue takes before it drops frames."})
	KMinBytes = declare(Metric{Name: "k_min_bytes", Kind: Gauge, Unit: Bytes, Scope: Port,
		Help: "K_min, above which packets are marked; where the control law applies, its reference."})
	KMaxBytes = declare(Metric{Name: "k_max_bytes", Kind: Gauge, Unit: Bytes, Scope: Port,
		Help: "K_max, above which senders are notified; where the control law applies, twice its reference."})
	RateBPS = declare(Metric{Name: "rate_bps", Kind: Gauge, Unit: BitsPerSecond, Scope: Port,
		Help: "Rate of the port on the line."})
	ECNMarkedPackets = declare(Metric{Name: "queue_ecn_marked_packets_total", Unit: Packets, Scope: Port,
		SONiC: "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", Help: "Packets that got CE in this port's queue."})
	ECNObservedPackets = declare(Metric{Name: "queue_ecn_observed_packets_total", Unit: Packets, Scope: Port,
		Help: "Packets that would have got CE in this port's queue if notifications.mode were not observe."})
	CEReceivedPackets = declare(Metric{Name: "roce_ce_received_packets_total", Unit: Packets, Scope: Port,
		MLX5: "np_ecn_marked_roce_packets", Help: "RoCEv2 packets received with CE."})
	CEClearedPackets = declare(Metric{Name: "roce_ce_cleared_packets_total", Unit: Packets, Scope: Port,
		Help: "RoCEv2 packets received with CE and forwarded without, as the gateway answered the mark itself."})
)

// Pacing of frames towards hosts that have sent CNPs.
var (
	PacedPackets = declare(Metric{Name: "paced_packets_total", Unit: Packets, Scope: Port,
		Help: "Packets held back because their host had sent a CNP or their flow was slowed down, including those that have left since."})
	PacedBytes = declare(Metric{Name: "paced_bytes", Kind: Gauge, Unit: Bytes, Scope: Port,
		Help: "Bytes of the packets held back now."})
	PacedTooMany = declare(Metric{Name: "paced_too_many_total", Scope: Port,
		Help: "Times that a packet left earlier than its host's or flow's pace allows, because there was no space to hold it."})
	PaceReductions = declare(Metric{Name: "pace_reductions_total", Scope: Port,
		Help: "Times that the pace of a host was reduced because of its CNP."})
	PaceReductionsMissed = declare(Metric{Name: "pace_reductions_missed_total", Scope: Port,
		Help: "Times that such a reduction did not reach one of the other workers, because too many waited for it."})
	NotificationsEnforced = declare(Metric{Name: "notifications_enforced_total", Scope: Port, Label: "action",
		Help: "Requests of notifications that the gateway carried out itself for a flow that leaves by this port."})
	NotificationsUnenforced = declare(Metric{Name: "notifications_unenforced_total", Scope: Port, Label: "reason",
		Help: "Requests of notifications to the senders of ports[].pacing.senders that the gateway did not carry out."})
)

// Flow control of a port's link. The label priority is the PFC priority, queue the number of a traffic class.
var (
	PFCReceived = declare(Metric{Name: "pfc_received_packets_total", Unit: Packets, Scope: Port, Label: "priority",
		SONiC: "SAI_PORT_STAT_PFC_n_RX_PKTS", Help: "PFC frames for the priority received by this port while its flow control is on."})
	PFCSent = declare(Metric{Name: "pfc_sent_packets_total", Unit: Packets, Scope: Port, Label: "priority",
		SONiC: "SAI_PORT_STAT_PFC_n_TX_PKTS", Help: "PFC frames for the priority that the gateway sent by this port."})
	PFCUnsent = declare(Metric{Name: "pfc_unsent_total", Scope: Port, Label: "reason",
		Help: "Times that a PFC frame was due but not sent."})
	PFCExpired = declare(Metric{Name: "pfc_xoff_expired_total", Scope: Port, Label: "priority",
		Help: "Times that the gateway let the other end resume because it had been stopped for flow_control.xoff_limit."})
	PauseReceived = declare(Metric{Name: "pause_received_packets_total", Unit: Packets, Scope: Port,
		SONiC: "SAI_PORT_STAT_PAUSE_RX_PKTS", OpenConfig: "in-mac-pause-frames", Help: "PAUSE frames received by this port while its flow control is on."})
	PFCStormsDetected = declare(Metric{Name: "pfc_watchdog_detected_total", Scope: Port, Label: "queue",
		SONiC: "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", Help: "Times that a class was paused for flow_control.watchdog.detection_time."})
	PFCStormsRestored = declare(Metric{Name: "pfc_watchdog_restored_total", Scope: Port, Label: "queue",
		SONiC: "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED", Help: "Times that such a class returned to normal."})
)

// Notifications.
var (
	NotificationsSent = declare(Metric{Name: "notifications_sent_total", Unit: Notifications, Scope: Port, Label: "kind",
		MLX5: "np_cnp_sent", Help: "Notifications that the gateway sent."})
	NotificationsObserved = declare(Metric{Name: "notifications_observed_total", Unit: Notifications, Scope: Port, Label: "kind",
		Help: "Notifications that the gateway would have sent if notifications.mode were not observe."})
	NotificationsTriggered = declare(Metric{Name: "notifications_triggered_total", Unit: Notifications, Scope: Port, Label: "trigger",
		Help: "Notifications sent or observed, except Resume, by the condition that caused them; the first one if several hold."})
	SendersUnwatched = declare(Metric{Name: "senders_unwatched_total", Unit: Events, Scope: Port,
		Help: "Notifications to senders that could not be watched because too many others were: they get no Resume and no stricter notification."})
	SendersUnresponsive = declare(Metric{Name: "senders_unresponsive_total", Unit: Events, Scope: Port,
		Help: "Senders of flows that leave by the port which were found not to react to notifications: in 200 ms and 32 notifications no rate fell."})
	FastCNPTraceTooLong = declare(Metric{Name: "notifications_fast_cnp_trace_too_long_total", Unit: Notifications, Scope: Port,
		Help: "Fast CNPs that were sent with option 1, as the data packet's IOAM trace is too long for option 2."})
	FastCNPRefused = declare(Metric{Name: "notifications_fast_cnp_refused_total", Unit: Notifications, Scope: Port,
		Help: "ICMPv6 Parameter Problems from notified hosts that don't support the Fast CNP option; such a host gets no Fast CNP for 5 minutes."})
	NotificationsReceived = declare(Metric{Name: "notifications_received_total", Unit: Notifications, Scope: Port, Label: "kind",
		MLX5: "rp_cnp_handled", Help: "Received CNPs and notifications that others sent."})
	NotificationsSuppressed = declare(Metric{Name: "notifications_suppressed_total", Unit: Notifications, Scope: Port, Label: "reason",
		Help: "Times that a sender was not notified of congestion, though it was due."})
)

// The gateway as a proxy, and as a host on the ports' networks.
var (
	ProxyAccepted = declare(Metric{Name: "proxy_notifications_accepted_total", Unit: Notifications, Scope: Port,
		Help: "Notifications to the gateway as a proxy that were accepted: their senders are notified at the flow's next data packet."})
	ProxyRefused = declare(Metric{Name: "proxy_notifications_refused_total", Unit: Notifications, Scope: Port, Label: "reason",
		Help: "Notifications to the gateway as a proxy that had no effect."})
	ProxyTranslated = declare(Metric{Name: "proxy_notifications_translated_total", Unit: Notifications, Scope: Port, Label: "kind",
		Help: "Notifications to senders, sent or observed, that a notification to the gateway as a proxy caused."})
	AnswersSent = declare(Metric{Name: "answers_sent_packets_total", Unit: Packets, Scope: Port, Label: "kind",
		Help: "Answers to ARP requests, Neighbor Solicitations and echo requests for the gateway's addresses."})
	AnswersUnsent = declare(Metric{Name: "answers_unsent_packets_total", Unit: Packets, Scope: Port, Label: "reason",
		Help: "Answers to such requests that the gateway did not send."})
	AddressConflicts = declare(Metric{Name: "address_conflicts_total", Unit: Events, Scope: Port,
		Help: "ARP frames and Neighbor Advertisements in which another node claims an address of the gateway."})
)

// Round-trip times of the path behind a port, and values derived from them.
var (
	RTTEstimate = declare(Metric{Name: "rtt_estimate_nanoseconds", Kind: Gauge, Unit: Nanoseconds, Scope: Port,
		Help: "Current RTT_est, 0 while it is unknown; the report shows its source."})
	RTTSamples = declare(Metric{Name: "rtt_samples_total", Scope: Port, Label: "rtt_source",
		Help: "Round-trip time measurements."})
	RTTRefused = declare(Metric{Name: "rtt_samples_refused_total", Unit: Events, Scope: Port,
		Help: "Passive round-trip time measurements below half of the configured RTT."})
	FlowInterval = declare(Metric{Name: "flow_interval_nanoseconds", Kind: Gauge, Unit: Nanoseconds, Scope: Port,
		Help: "Least time between two notifications of one flow."})
	AdjustedPercent = declare(Metric{Name: "adjusted_percent", Kind: Gauge, Unit: Percent, Scope: Port,
		Help: "Factor of dynamic adjustment for thresholds and intervals, in percent; 100 if it is off."})
	STAMPSent = declare(Metric{Name: "stamp_sent_packets_total", Unit: Packets, Scope: Port, Label: "kind",
		Help: "STAMP test packets and replies that the gateway sent."})
	STAMPUnsent = declare(Metric{Name: "stamp_unsent_packets_total", Unit: Packets, Scope: Port, Label: "reason",
		Help: "STAMP test packets and replies that the gateway did not send."})
)

// Frames that a port's device counted itself.
var (
	DeviceMissed = declare(Metric{Name: "device_missed_packets_total", Unit: Packets, Scope: Device,
		MLX5: "rx_out_of_buffer", SONiC: "RX_DRP", OpenConfig: "in-discards", Help: "Frames for which the device, or the kernel's queue, had no place."})
	DeviceNoBuffer = declare(Metric{Name: "device_no_buffer_packets_total", Unit: Packets, Scope: Device,
		Help: "Frames for which there was no free buffer."})
	DeviceReceiveErrors = declare(Metric{Name: "device_receive_errors_total", Scope: Device, SONiC: "RX_ERR", OpenConfig: "in-errors",
		Help: "Frames that were damaged, or of a length that the device doesn't accept."})
	DeviceOversized = declare(Metric{Name: "device_oversized_packets_total", Unit: Packets, Scope: Device, SONiC: "RX_OVR", OpenConfig: "in-oversize-frames",
		Help: "Frames longer than the device accepts; some devices count them as receive errors too."})
	DeviceTransmitErrors = declare(Metric{Name: "device_transmit_errors_total", Scope: Device, SONiC: "TX_ERR", OpenConfig: "out-errors",
		Help: "Frames that the device accepted but failed to send."})
)

// The gateway's speed. Workers publish histograms every millisecond.
var (
	ReactionTime = declare(Metric{Name: "reaction_time_nanoseconds", Kind: Sizes, Unit: Nanoseconds, Scope: Port,
		Help: "Time from the reception of the packet that caused a notification until this port's device accepted the notification."})
	QueueOccupancy = declare(Metric{Name: "queue_occupancy_bytes", Kind: Sizes, Unit: Bytes, Scope: Queue, OpenConfig: "avg-queue-len",
		Help: "Queue depth, sampled once a millisecond; sum divided by count is the average."})
	LoopGap = declare(Metric{Name: "loop_gap_nanoseconds", Kind: Sizes, Unit: Nanoseconds, Label: "worker",
		Help: "Time between two steps of a worker, including sleep when idle."})
	WorkerStalled = declare(Metric{Name: "worker_stalled", Kind: Gauge, Label: "worker",
		Help: "1 if the worker has stopped stepping, else 0."})
	WorkerStalls = declare(Metric{Name: "worker_stalls_total", Label: "worker",
		Help: "Times that the worker did not step for 50 ms or more."})
)

// What the gateway does besides forwarding.
var (
	ServiceUp = declare(Metric{Name: "service_up", Kind: Gauge, Label: "service",
		Help: "1 if the service of this configuration key works, else 0; forwarding depends on none."})
	ConfigFileDiffers = declare(Metric{Name: "config_file_differs", Kind: Gauge,
		Help: "1 if the configuration file differs from the configuration in force, else 0."})
)

// Memory of fixed size.
var (
	TableUsed = declare(Metric{Name: "table_used", Kind: Gauge, Label: "table",
		Help: "Entries of this table in use, looked at every 10 s."})
	TableSize = declare(Metric{Name: "table_size", Kind: Gauge, Label: "table",
		Help: "Entries that this table has."})
	LogLinesLost = declare(Metric{Name: "log_lines_lost_total",
		Help: "Lines of the log that were lost because their reader stood still."})
)

// Flow tables.
var (
	FlowsKnown = declare(Metric{Name: "flows", Kind: Gauge, Unit: Flows,
		Help: "Flows in the tables."})
	FlowsAged = declare(Metric{Name: "flows_aged_total", Unit: Flows,
		Help: "Flows that ended because they were idle."})
	FlowEvictions = declare(Metric{Name: "flow_evictions_total",
		Help: "Flows that ended because others needed their place."})
	FlowsRefused = declare(Metric{Name: "flows_refused_total", Unit: Flows,
		Help: "Times that a flow found no place in the table, because no other flow could be removed."})
)

// Source QPs.
var (
	QPEvidence = declare(Metric{Name: "qp_evidence_total", Label: "qp_evidence",
		Help: "Pieces of evidence for source QPs; what counts as one depends on the source."})
	QPConfirmed = declare(Metric{Name: "qp_confirmed_total", Label: "qp_evidence",
		Help: "Flows whose source QP was confirmed by this source."})
	QPContradictions = declare(Metric{Name: "qp_contradictions_total",
		Help: "Pairs of QPs that were revoked because packets contradicted them."})
	QPReuses = declare(Metric{Name: "qp_reuses_total",
		Help: "Flows that ended because one of their QPs was reused for another connection."})
	QPEvidenceSkipped = declare(Metric{Name: "qp_evidence_skipped_total",
		Help: "Times that evidence was ignored, for lack of budget or because another worker held the lock."})
	QPUnpaired = declare(Metric{Name: "qp_unpaired_total",
		Help: "Times that a flow found no slot in the pairing table."})
	QPDisplaced = declare(Metric{Name: "qp_displaced_total",
		Help: "Flows without a peer flow that lost their slot in the full pairing table to a flow whose source has fewer of them."})
	QPCMDropped = declare(Metric{Name: "qp_cm_dropped_total",
		Help: "Messages of RDMA-CM that were not read, because too many waited to be read."})
	QPHintsAmbiguous = declare(Metric{Name: "qp_hints_ambiguous_total",
		Help: "Flows that a hint without a destination did not name, because several match it."})
)
