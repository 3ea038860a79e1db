package health

import (
	"cmp"
	"fmt"
	"slices"
)

// Note is something that a reader should know, and that isn't wrong.
type Note struct {
	Name    string `json:"note" doc:"Its name."`
	Subject string `json:"subject" doc:"The hosts, from the requester to the responder."`
	Text    string `json:"text" doc:"What it is."`
}

// The notes.
const (
	NoteReordered = "reordering-accepted"
	NoteClocks    = "capture-clocks-differ"
	NoteCopies    = "captured-twice"
	NotePauses    = "pfc-pauses-short"
	NoteUnlisted  = "connections-left-out"
	NoteNotListed = "connections-not-listed"
	NoteAddress   = "answered-from-another-address"
	NoteDatagrams = "datagrams-without-answer"
	NoteRejected  = "rejected-at-first"
	NoteLate      = "accepted-late"
	NoteWindow    = "waits-for-acks"
	NoteAllMarked = "all-marked"
	NoteMACs      = "two-mac-addresses"
)

// manyMarked are so many that a queue, which marks some (RED), rarely marks all of them.
const manyMarked = 64

// notes are those about one end's requests.
func (c *Connection) notes(i int) (all []Note) {
	h := &c.Half[i]
	add := func(name, format string, args ...any) {
		all = append(all, Note{Name: name, Subject: c.subject(i), Text: fmt.Sprintf(format, args...)})
	}
	if _, differ := h.mtus.differ(); differ {
		return nil
	}
	if h.OutOfOrder >= 3 && h.accepted() {
		add(NoteReordered, "%d packets came late, behind packets that were sent after them; the receiver accepted them (no NAK, nothing sent again because of it), as with adaptive routing, or a capture that records them in another order",
			h.OutOfOrder)
	}
	if evidence, advice := c.window(i); evidence != "" && h.Ended-h.Begun < lasting {
		add(NoteWindow, "%s; if it has more to send, %s", evidence, advice)
	}
	if r := &c.Reaction[i]; r.CE >= manyMarked && r.CE == r.Packets {
		add(NoteAllMarked, "each of %d packets from %v is marked CE: it marks them itself if the ECN bits of its traffic class are 3 (NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS; they must be 2), or a queue before here is always longer than it may be",
			r.CE, c.End[i].Addr.Netip())
	}
	if h.EarlyAnswers > 0 {
		add(NoteClocks, "answers are recorded up to %v before their requests: the clocks or queues of the capture differ, so round trips aren't measured", Duration(h.Lead))
	}
	return all
}

// mergeNotes keeps one note of a name about a subject.
func mergeNotes(all []Note) []Note {
	slices.SortStableFunc(all, func(a, b Note) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Subject, b.Subject)) })
	all = slices.CompactFunc(all, func(a, b Note) bool { return a.Name == b.Name && a.Subject == b.Subject })
	if all == nil {
		return []Note{}
	}
	return all
}

// conclude is the answer in a sentence. "Nothing is wrong." needs evidence: RDMA was examined, most of what there is, in both directions, and nothing that was
// counted contradicts it.
func (r *Report) conclude() string {
	s := &r.Summary
	unread, links := uint64(0), uint64(0)
	if r.Frames != nil {
		for _, u := range r.Frames.Unread {
			switch {
			case u.RDMA:
				unread += u.Frames
			case u.Reason == ReasonLinkType:
				links += u.Frames
			}
		}
	}
	suspicious := s.Retransmitted.Packets + s.NAKs + s.RNRNAKs + s.LostUpstream + s.LostDownstream
	switch {
	case len(r.Verdicts) > 0:
		what := "One thing is"
		if n := len(r.Verdicts); n > 1 {
			what = fmt.Sprintf("%d things are", n)
		}
		return what + " wrong" + leftOut(unread) + "."
	case s.Packets == 0 && unread+links == 0 && r.Frames != nil && r.Frames.Examined > 0:
		return fmt.Sprintf("Nothing was seen but CNPs and the set-up of connections (%d packets), so nothing can be said of data. %s", r.Frames.Examined, bypass)
	case s.Packets == 0 && unread+links == 0 && r.Frames != nil:
		return "No RDMA packet was seen, so nothing can be said. " + bypass
	case s.Packets == 0 && unread+links == 0:
		return "No RDMA packet was seen, so nothing can be said."
	case s.Packets == 0 || unread+links > s.Packets:
		return fmt.Sprintf("Most frames that are or may be RDMA could not be examined (%d of %d): nothing can be said of them.", unread+links, unread+links+s.Packets)
	case suspicious > 0:
		return fmt.Sprintf("No cause stands out, but not all is well: %d packets sent again, %d NAKs, %d RNR NAKs, %d lost.",
			s.Retransmitted.Packets, s.NAKs, s.RNRNAKs, s.LostUpstream+s.LostDownstream)
	case s.unheard > 0:
		return fmt.Sprintf("No cause stands out, but not all is well: %d connections end with a request that was never answered here, nor sent again: a host has stopped, its requester has failed in the midst of a message, or its QP's timeout is 0 (never).",
			s.unheard)
	case s.OneDirection*2 > s.Connections:
		return fmt.Sprintf("Nothing wrong was found in what was seen, which is one direction only of %d of %d connections: losses behind here and round trips are unknown.",
			s.OneDirection, s.Connections)
	case s.unacknowledged*2 > s.Connections:
		return fmt.Sprintf("Nothing wrong was found, but %d of %d connections are UD or UC, which have no acknowledgements: what is lost behind here isn't seen.", s.unacknowledged, s.Connections)
	case unread > 0:
		return fmt.Sprintf("Nothing is wrong with the %d packets that were examined; %d frames that are or may be RDMA were not.", s.Packets, unread)
	}
	return "Nothing is wrong."
}

// bypass is why a capture at a host may have no data.
const bypass = "A NIC's RDMA bypasses the host's kernel: capture at the RDMA device (such as tcpdump -i mlx5_0), or at a switch."

// leftOut says that frames that are or may be RDMA were not examined.
func leftOut(unread uint64) string {
	if unread == 0 {
		return ""
	}
	return fmt.Sprintf("; %d frames that are or may be RDMA could not be examined", unread)
}
