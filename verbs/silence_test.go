package verbs_test

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
	"github.com/dgrdma/dgrdma/verbs"
)

// Attack V9: a fault that shows while this side answers ends the connection, although the peer says nothing more: when it has
// taken all that it was told, and when it takes nothing.
func TestAttackSilence(t *testing.T) {
	for _, takes := range []bool{true, false} {
		v := newVictim(t, &verbs.Options{Extensions: verbs.Commit})
		d := v.host.Domain()
		big, err := d.Register(make([]byte, 64<<20), verbs.RemoteRead, nil)
		if err != nil {
			t.Fatal(err)
		}
		hashed, err := d.Register(make([]byte, 100), verbs.Verify|verbs.RemoteRead, &verbs.RegionOptions{Algorithm: verbs.SHA256})
		if err != nil {
			t.Fatal(err)
		}
		a := v.attack(&mpa.Options{ORD: 8})
		a.send(readRequest(1, big.Key()))
		if _, err := a.nc.Read(make([]byte, 1)); err != nil { // the answer is under way
			t.Fatal(err)
		}
		taken := make(chan error, 1)
		if takes {
			big.Invalidate()
			go func() {
				_, err := io.Copy(io.Discard, a.nc)
				taken <- err
			}()
		} else {
			b := binary.BigEndian.AppendUint32(nil, hashed.STag())
			b = binary.BigEndian.AppendUint32(b, 100)
			b = binary.BigEndian.AppendUint64(b, hashed.Base())
			a.send(untagged(0x4e, 1, 2, append(b, make([]byte, 32)...)))
			taken <- nil
		}
		var te *verbs.TerminateError
		if err := v.ended(); !errors.As(err, &te) || te.Remote {
			t.Errorf("takes %v: ended with %v", takes, err)
		}
		if err := <-taken; err != nil {
			t.Errorf("the peer lost what it was told: %v", err)
		}
		a.nc.Close()
		v.over()
	}
}
