package nictest

const (
	second      = 1_000_000_000 // ns
	millisecond = 1_000_000
	microsecond = 1000
	// maxBins bounds the bins of a trial.
	maxBins = 1 << 18
)

// curve is a rate over time, in bins of equal width. A packet's bits belong to the time since the packet before, as a NIC sends a packet when its
// rate allows: so the rate between two packets is exact, however few there are in a bin.
type curve struct {
	start, bin int64
	last       int64     // when the last packet came
	bits       []float64 // by bin
}

func newCurve(start, bin int64) curve { return curve{start: start, last: start, bin: bin} }

// add notes that a packet of so many bits came.
func (c *curve) add(now int64, bits float64) {
	from := c.last
	c.last = now
	if now <= from {
		c.put(now, bits)
		return
	}
	each := bits / float64(now-from)
	for from = max(from, c.start); from < now; {
		to := min(now, c.start+((from-c.start)/c.bin+1)*c.bin)
		if !c.put(from, each*float64(to-from)) {
			return
		}
		from = to
	}
}

// put adds bits to the bin of a time. It returns false if there are too many bins.
func (c *curve) put(at int64, bits float64) bool {
	i := (at - c.start) / c.bin
	if i < 0 || i >= maxBins {
		return false
	}
	for int64(len(c.bits)) <= i {
		c.bits = append(c.bits, 0)
	}
	c.bits[i] += bits
	return true
}

// rate is the mean rate between two times, in whole bins, bit/s.
func (c *curve) rate(from, to int64) float64 {
	a, b := max(0, (from-c.start)/c.bin), min(int64(len(c.bits)), (to-c.start)/c.bin)
	if a >= b {
		return 0
	}
	sum := 0.0
	for _, x := range c.bits[a:b] {
		sum += x
	}
	return sum * second / float64((b-a)*c.bin)
}

// Point is the mean rate in a part of a trial.
type Point struct {
	At    int64   `json:"at_ns"` // since the first notification
	Width int64   `json:"width_ns"`
	Rate  float64 `json:"bps"`
}

// Points per width of a compact curve: the first ones, and those of each further width, which is twice the one before.
const firstPoints, morePoints = 256, 128

// compact returns the curve with fewer points, the later the coarser.
func (c *curve) compact() (points []Point) {
	width, left := int64(1), firstPoints
	for i := int64(0); i+width < int64(len(c.bits)); {
		at := c.start + i*c.bin
		points = append(points, Point{i * c.bin, width * c.bin, c.rate(at, at+width*c.bin)})
		i += width
		if left--; left == 0 {
			width, left = 2*width, morePoints
		}
	}
	return points
}
