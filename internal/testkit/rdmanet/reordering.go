package rdmanet

// This file says when reordering is due.

// late are the packets that passed behind others that were sent after them.
func (j *judge) late() map[*Packet]bool {
	all, latest := map[*Packet]bool{}, [2]int{}
	for _, p := range j.shown {
		switch {
		case !p.data():
		case p.order < latest[p.Kind]:
			all[p] = true
		default:
			latest[p.Kind] = p.order
		}
	}
	return all
}

func (j *judge) reordering() {
	asked := 0
	for _, e := range j.half.Episodes {
		if e.Reason() == Reordered {
			asked++
		}
	}
	if asked == 0 {
		return
	}
	shown, late := 0, j.late()
	for _, e := range j.begun {
		if e.Reason() == Reordered && late[e.About()] {
			shown++
		}
	}
	nic := j.half.Conn.NIC
	numbered := nic.Identified && !nic.IPv6 // else nothing but the order of a NAK and a packet says whether that is late, or was sent again
	j.hold(j.full() && shown >= fewLate && (numbered || j.capture.View.Skew == 0), "reordering")
}
