package health

// run are CNPs that keep coming to a sender whose rate before them isn't known. A sender that obeys gets slower with each, down to its least rate.
type run struct {
	at   int64 // when it began; 0: there is none
	CNPs uint64
}

const (
	runGap  = 5 * ms // CNPs farther apart belong to different runs
	runBins = 16     // a run is judged after so many bins, or when the counts are read
	fewBins = 5
	runLess = 50                                // CNPs that have no effect for another reason
	runRate = uint64(500e6 / 8 * binTime / 1e9) // bytes a bin: NICs do not go below a least rate of up to 100 Mbit/s
)

// begin is the first bin that lies in the run as a whole.
func (r *run) begin() int64 { return r.at/binTime + 1 }

// judgeRun compares the rate at the end of a run of CNPs with the one at its beginning. The present bin isn't complete.
func (r *Reaction) judgeRun() {
	from, to := r.run.begin(), r.bin-1
	cnps := r.run.CNPs
	r.run = run{}
	if to-from < fewBins || (to-from)*binTime < 4*r.loop || r.lost || cnps < runLess {
		return
	}
	before := uint64(r.bins[from%bins]) + uint64(r.bins[(from+1)%bins])
	after := uint64(r.bins[(to-1)%bins]) + uint64(r.bins[to%bins])
	switch {
	case before < 2*runRate:
	case after*100 >= before*fell:
		r.Episodes++
		r.Ignored += cnps
	default:
		r.Episodes++
		r.Obeyed++
		r.Delay += (to - from) * binTime
		r.Depth += 100 - after*100/before
	}
}
