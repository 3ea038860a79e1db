package health

import "fmt"

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

// ReasonRoCEv1 is why RoCE v1 isn't examined: a verdict follows from it.
const ReasonRoCEv1 = "rocev1"

// ReasonLinkType is why frames of an interface of another kind aren't.
const ReasonLinkType = "link-type-not-read"

// verdicts are those that follow from frames that were not examined.
func (f *Frames) verdicts() (all []Verdict) {
	if f == nil {
		return nil
	}
	for _, u := range f.Unread {
		if u.Reason == ReasonRoCEv1 {
			all = append(all, Verdict{
				Name: RoCEv1, Subject: "the capture", Weight: u.Frames,
				Evidence: fmt.Sprintf("%d frames are RoCE v1 (EtherType 0x8915), which no router forwards; the first is frame %d", u.Frames, u.First),
				Advice:   "choose a RoCE v2 GID (NCCL_IB_GID_INDEX, UCX_IB_GID_INDEX, perftest's -x; show_gids lists them)",
			})
		}
	}
	return all
}
