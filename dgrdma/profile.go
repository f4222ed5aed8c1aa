package dgrdma

import "github.com/dgrdma/dgrdma/endpoint/foreign"

// Native is the profile for peers of this implementation.
func Native() Profile { return foreign.Native() }

// FPGA is the profile for OpenCPI's hardware engine.
func FPGA() Profile { return foreign.FPGA() }

// OpenCPI is the profile for OpenCPI's first C++ driver. Over UDP it takes
// datagrams of 512 bytes, two of them the prefix, over Ethernet 1488.
func OpenCPI(overUDP bool) Profile { return foreign.OpenCPI(overUDP) }

// OpenCPI2 is the profile for OpenCPI's second C++ driver, which neither sends
// acknowledgements nor, by default, waits for any: a transaction is done when
// the system took its last frame. The driver may stand still for 50 ms before what is sent at
// this pace overflows its socket's buffer, if that is as large as Linux makes it; Config.PeerBuffer
// is for others.
func OpenCPI2() Profile { return foreign.OpenCPI2() }

// Legacy is the profile for OpenCPI's C++ driver before 2021.
func Legacy(overUDP bool) Profile { return foreign.Legacy(overUDP) }

// ProfileByName returns a preset.
func ProfileByName(name string, overUDP bool) (Profile, error) {
	return foreign.ProfileByName(name, overUDP)
}
