package dataplane

// OneByOne makes a worker look at every frame for itself, and rank flows as soon as it keeps their shares.
func (w *Worker) OneByOne() {
	w.oneByOne = true
	for i := range w.egress {
		for class := range w.egress[i].shares {
			w.egress[i].shares[class].eager = true
		}
	}
}

// Ranked tells whether the flows in a class of a port's queue are ranked.
func (w *Worker) Ranked(port, class int) bool { return w.egress[port].shares[class].ranked }
