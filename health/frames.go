package health

// Frames accounts for each frame of a capture.
type Frames struct {
	Total    uint64   `json:"total" doc:"Frames of the capture."`
	Examined uint64   `json:"examined" doc:"RoCEv2 packets that were followed, and CNPs."`
	Unread   []Unread `json:"unread" doc:"What was not examined, by reason; most frames first."`
}

// Unread are frames that were not examined for one reason.
type Unread struct {
	Reason string `json:"reason" doc:"Why."`
	Frames uint64 `json:"frames" doc:"How many."`
	First  uint64 `json:"first_frame" doc:"Number of the first one, from 1."`
	RDMA   bool   `json:"rdma" doc:"Whether they carry RDMA, or may."`
	Detail string `json:"detail,omitempty" doc:"What they are."`
	Advice string `json:"advice,omitempty" doc:"What to do."`
}
