package worlds

import (
	"errors"
	"net"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Kind is a kind of peers, by the name of its profile.
type Kind string

// The kinds that are played by endpoints of ours.
const (
	Native   Kind = "native"
	OpenCPI  Kind = "opencpi"
	Legacy   Kind = "opencpi-legacy"
	OpenCPI2 Kind = "opencpi2"
	FPGA     Kind = "fpga" // node 0 takes node 1 for a card
)

// Profile returns what a node assumes of its peers. Whether they are on UDP decides how long
// their frames are.
func (k Kind) Profile(node int, overUDP bool) dgrdma.Profile {
	switch k {
	case OpenCPI:
		return resentRarely(dgrdma.OpenCPI(overUDP))
	case Legacy:
		return resentRarely(dgrdma.Legacy(overUDP))
	case OpenCPI2:
		// Frames of such a peer carry their sender's id as destination.
		prof := dgrdma.OpenCPI2()
		prof.OwnDestination = false
		prof.Drain *= 25 // an endpoint of ours in its place does not stand still
		return prof
	case FPGA:
		// The card's part is played by an endpoint that acknowledges.
		if node == 0 {
			prof := dgrdma.FPGA()
			prof.Probe = false // only the card acknowledges frames without messages
			return prof
		}
		return resentRarely(dgrdma.Legacy(false))
	}
	return dgrdma.Native()
}

// resentRarely is a driver's profile for one of ours in its place: we wait longer
// each time before we send again, and would look like a new life.
func resentRarely(p dgrdma.Profile) dgrdma.Profile {
	p.CopyFor = 0
	return p
}

// Faults says what the network may do to frames.
type Faults struct{ Loss, Duplicate, Reorder, Hold bool }

// Faults returns what the network may do to those of a node.
func (k Kind) Faults(node int) Faults {
	switch k {
	case OpenCPI2:
		return Faults{Duplicate: true}
	case FPGA:
		return Faults{Loss: node == 1, Duplicate: node == 1, Reorder: node == 1}
	case OpenCPI, Legacy:
		return Faults{Loss: true, Duplicate: true, Reorder: true}
	}
	return Faults{true, true, true, true}
}

// Excused reports whether a transaction may fail with an error where peers restart, are away,
// or are begun anew with.
func Excused(err error) bool {
	// ErrClosed, or the wire's own word if it was closed before its endpoint, in a crash.
	return errors.Is(err, net.ErrClosed) || errors.Is(err, dgrdma.ErrPeerDown) ||
		errors.Is(err, dgrdma.ErrPeerRestarted) || errors.Is(err, dgrdma.ErrReset)
}

// Native reports whether peers of a kind have sessions, as our own do.
func (k Kind) Native() bool { return k.Profile(0, false).Session }
