package endpoint

// Counters is what a Host counts. FramesReceived = WrongDestination + FlowControl + Notifications + WrongICRC + CMReceived + UnknownQP +
// WrongPeer + Unsupported + InSequence + Duplicates + OutOfSequence + Acknowledgements + ReadResponses.
type Counters struct {
	FramesSent, BytesSent uint64
	DataSent              uint64 // data packets and READ requests, including Retransmitted
	Retransmitted         uint64
	ACKsSent, NAKsSent    uint64
	CNPsSent              uint64
	CMSent                uint64 // messages of RDMA-CM
	WentBack              uint64 // times that a requester began to retransmit
	TimedOut              uint64
	MessagesDone          uint64
	MessagesFailed        uint64
	Pings, PingErrors     uint64 // rounds of rping's exchange that completed, and exchanges that failed

	FramesReceived   uint64
	WrongDestination uint64 // another host's address
	FlowControl      uint64 // PFC and PAUSE
	Notifications    uint64 // and other packets that don't belong to a QP: ReactionPoint counts these
	WrongICRC        uint64
	CMReceived       uint64 // packets to QP 1, if RDMA-CM is enabled: CMCounters counts them by effect
	UnknownQP        uint64
	WrongPeer        uint64 // not from the QP's peer, or not of its transport
	Unsupported      uint64 // requests and MAC control frames that the host doesn't support
	InSequence       uint64 // requests and datagrams that were accepted
	Duplicates       uint64 // requests that were accepted before
	OutOfSequence    uint64 // requests after a gap
	Acknowledgements uint64 // including NAKs
	NAKsReceived     uint64
	ReadResponses    uint64
	ReadsDropped     uint64 // READs dropped because the responder's queue was full; part of InSequence and Duplicates
	CEReceived       uint64 // CE-marked data packets
}
