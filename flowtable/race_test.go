//go:build race

package flowtable

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const plantedRace = "FLOWTABLE_TEST_PLANTED_RACE"

// TestMain runs the tests, or, in the process that TestDetectorSeesTables starts, the planted race.
func TestMain(m *testing.M) {
	if os.Getenv(plantedRace) != "" {
		raceOnFlow()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// raceOnFlow reads an owner's plain word from another goroutine, which the table forbids. Nothing orders the two accesses, so
// the detector reports them whichever comes first.
func raceOnFlow() {
	tab, err := New(make([]byte, Size(8)), Config{Capacity: 8})
	if err != nil {
		os.Exit(1)
	}
	x := one(tab, keyOf(1), 1)
	read := make(chan int64)
	go func() { read <- tab.entries[x].lastSeen }()
	one(tab, keyOf(1), 2)
	<-read
}

// The race detector sees only Go memory. This test shows that it sees the memory that the tests of this package give to tables, so that it
// would report their races.
func TestDetectorSeesTables(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), plantedRace+"=1", "GORACE=exitcode=66")
	out, err := c.CombinedOutput()
	report := string(out)
	if c.ProcessState.ExitCode() != 66 || !strings.Contains(report, "WARNING: DATA RACE") || !strings.Contains(report, "raceOnFlow") {
		t.Fatalf("a planted race was not reported: %v\n%s", err, report)
	}
}
