package dataplane

// Occupied is how full a table of fixed size is, in entries.
type Occupied struct {
	Table      string
	Used, Size int
}

// Occupied are the tables of all workers together, at a time of the workers' clock, ns. Any goroutine may call it; it reads tables as a whole, some ms for 10^6 flows.
func (d *Dataplane) Occupied(now int64) []Occupied {
	flows, senders := Occupied{Table: "flows"}, Occupied{Table: "senders"}
	for _, w := range d.workers {
		watched, most := w.senders.Used()
		senders.Used, senders.Size = senders.Used+watched, senders.Size+most
		flows.Used, flows.Size = flows.Used+int(w.FlowStats().Flows), flows.Size+d.flows
	}
	slots, groups, allSlots, allGroups := d.pairing.Used()
	used, size := d.limits.Destinations(now)
	return []Occupied{flows, {"pairing", slots, allSlots}, {"pairing-hosts", groups, allGroups}, senders, {"destinations", used, size}}
}
