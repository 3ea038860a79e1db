package lossless

// Link is the ingress link of a lossless class. Its headroom is the bytes that can still arrive after the class has reached XOff, if none
// leave meanwhile.
type Link struct {
	Speed    uint64 // bit/s
	Cable    int64  // length in m
	Frame    int    // bytes of the longest frame, without FCS
	Response int64  // ns from the other end's reception of a PFC frame until it begins no more frames
	Reaction int64  // ns from a frame's arrival until the gateway gives its device the resulting PFC frame
	// Shared is the rate in bit/s of the queue's port if several workers share the queue, otherwise 0: a worker's value of another's depth
	// may be a Reaction old, and still include bytes that have left since.
	Shared uint64
}

const (
	fibreDelay   = 5  // ns/m: light in a fibre, and a signal in copper
	lineOverhead = 24 // overhead in bytes of a frame on the line: preamble, delimiter, FCS, gap (IEEE 802.3 3.1.1, 4.4.2)
	pfcOnLine    = 84 // bytes of a PFC frame on the line
	leastOnLine  = 84 // bytes of the shortest frame on the line
	bothWays     = 2
	frames       = 3 // of maximum length in the headroom
)

// Headroom is in bytes of frames without FCS. It adds up, at the link's speed:
//
//   - the frame that passes XOff, which counts once it has arrived completely;
//   - the cable's delay, once for the PFC frame and once for the last data frame;
//   - a frame of maximum length that the gateway's device is sending when it gets the PFC frame, and the PFC frame itself;
//   - the response time of the other end (IEEE 802.3 31B.3.7), and a frame of maximum length that it begins at the end of that time;
//   - the gateway's own reaction.
//
// Bytes on the line count as bytes of frames, which are fewer.
func (l *Link) Headroom() uint64 {
	wait := bothWays*fibreDelay*l.Cable + l.Response + l.Reaction
	return bytesIn(wait, l.Speed) + bytesIn(l.Reaction, l.Shared) + frames*uint64(l.Frame+lineOverhead) + pfcOnLine
}

// Frames is the maximum number of frames in the headroom, if all have minimum length.
func (l *Link) Frames() int { return int((l.Headroom() + leastOnLine - 1) / leastOnLine) }

// responses are the pause response times by the speed of a link (IEEE 802.3 31B.3.7; the row for 10 Gb/s also applies to slower links), in
// quanta.
var responses = [...]struct {
	speed  uint64 // at most, bit/s
	quanta uint16
}{
	{10e9, 60},
	{25e9, 80},
	{40e9, 118},
	{100e9, 394},
	{^uint64(0), 905},
}

// Response is the time in ns within which IEEE 802.3 requires a station to stop, on a link of a speed in bit/s.
func Response(speed uint64) int64 {
	for i := range responses {
		if speed <= responses[i].speed {
			return PauseTime(responses[i].quanta, speed) + 1
		}
	}
	return 0 // the last row has every speed
}
