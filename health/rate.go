package health

// Reaction is how the sender at one end reacts to CNPs.
type Reaction struct {
	CNPs     uint64
	Packets  uint64 // that it sent
	CE       uint64 // those that were marked
	FirstCE  int64  // time of the first one
	Ignored  uint64 // CNPs in episodes without a slow-down
	during   uint64 // CNPs of the present episode
	Episodes uint32 // CNPs after a while without one, with a steady rate before them, that could be judged
	Obeyed   uint32 // those after which the rate fell
	Delay    int64  // ns from the CNP to the slow-down: the sum over Obeyed, in steps of binTime
	Depth    uint64 // by how much the rate fell, in percent: the sum over Obeyed
	bytes    uint64
	bins     [bins]uint32
	packets  [bins]uint16
	bin      int64 // number of the current one
	at       int64 // when the CNP came; 0: no episode is open
	before   uint64
	lost     bool // something was sent again meanwhile: the rate says nothing of CNPs
	lastCNP  int64
	first    int64 // bin of the first packet
	run      run
	loop     int64  // ns from here to the sender and back; 0: not known
	window   uint32 // most packets on their way at once; 0: not known
}

const (
	bins    = 32
	binTime = 2 * ms
	steady  = 10 // bins before a CNP, and after it
	fewest  = 20 // packets before a CNP
	fell    = 80 // percent of the rate before: less is a slow-down
)

// sent notes bytes that the end sends, in a packet that is marked CE or not.
func (r *Reaction) sent(now int64, bytes uint32, ce bool) {
	if r.Packets++; r.Packets == 1 {
		r.first = now / binTime
	}
	if ce {
		if r.CE++; r.CE == 1 {
			r.FirstCE = now
		}
	}
	r.advance(now)
	r.bytes += uint64(bytes)
	r.bins[r.bin%bins] += bytes
	r.packets[r.bin%bins]++
}

// advance begins the bins up to the present one, and judges the CNP if all bins after it are complete.
func (r *Reaction) advance(now int64) {
	bin := now / binTime
	if bin == r.bin {
		return
	}
	if r.run.at != 0 && now-r.run.at > runLasts {
		r.judgeRun()
	}
	if r.at != 0 && bin > r.at/binTime+2*steady {
		r.clear(min(bin, r.at/binTime+2*steady+1))
		r.judge()
	}
	r.clear(bin)
}

func (r *Reaction) clear(bin int64) {
	if bin-r.bin > bins {
		r.bin = bin - bins
	}
	for r.bin < bin {
		r.bin++
		i := uint64(r.bin) % bins // without a sign, a mask
		r.bins[i], r.packets[i] = 0, 0
	}
}

// cnp notes a CNP to the end.
func (r *Reaction) cnp(now int64) {
	r.CNPs++
	r.advance(now)
	if r.run.at != 0 && now-r.lastCNP > runGap {
		r.judgeRun()
	}
	idle := r.lastCNP == 0 || now-r.lastCNP > steady*binTime
	r.lastCNP = now
	r.during++
	if r.at != 0 || !idle && r.Obeyed > 0 {
		return
	}
	packets := 0
	r.before = 0
	for i := int64(1); i <= steady; i++ {
		r.before += uint64(r.bins[(r.bin-i+bins)%bins])
		packets += int(r.packets[(r.bin-i+bins)%bins])
	}
	switch {
	case packets >= fewest && r.bin > steady && r.first < r.bin-steady:
		r.at, r.lost, r.during = now, false, 1
	default:
		if r.run.at == 0 {
			r.lost = false
		}
		r.cnpOfRun(now)
	}
}

// judge compares the rates after a CNP with the one before it. Two bins at a time: one alone is too uneven.
func (r *Reaction) judge() {
	from := r.at / binTime
	lowest, delay := r.before, int64(0)
	for i := from; i < from+2*steady; i++ {
		sum := (uint64(r.bins[i%bins]) + uint64(r.bins[(i+1)%bins])) * steady / 2
		if sum*100 < r.before*fell && delay == 0 {
			delay = max((i+1)*binTime-r.at, 0) + 1
		}
		lowest = min(lowest, sum)
	}
	r.at = 0
	if r.lost {
		return
	}
	r.Episodes++
	if delay == 0 {
		r.Ignored += r.during
	}
	if delay != 0 {
		r.Obeyed++
		r.Delay += delay
		r.Depth += 100 - lowest*100/max(r.before, 1)
	}
}
