package cnpdec

import (
	"testing"

	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestRefusesWhatIsNoNotification: an empty frame, and one cut in its headers, are refused without a panic.
func TestRefusesWhatIsNoNotification(t *testing.T) {
	r := Receiver{Code: packet.DefaultCodePoints}
	for _, frame := range [][]byte{nil, make([]byte, 14), make([]byte, 60)} {
		if n, err := r.DecodeFrame(frame); err == nil {
			t.Errorf("% x decoded to %+v", frame, n)
		}
	}
}
