package pairing

var connectionCounts = []int{2000, 16000, 100_000}
