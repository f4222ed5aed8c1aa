package verbs

import (
	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// Rights are what may be done with memory. Those with Remote, and those after, are for peers.
//
//	type Rights uint16
//
//	const (
//		// LocalWrite is what a stream needs to place there what its own side asked for: the
//		// answer to a Read.
//		LocalWrite Rights = 1 << iota
//		RemoteRead
//		// RemoteWrite includes the atomic write of eight bytes.
//		RemoteWrite
//		// RemoteAtomic is FetchAdd and CompareSwap.
//		RemoteAtomic
//		// FlushPersistent brings a file's bytes to its storage. Only files can have it.
//		FlushPersistent
//		// FlushGlobal makes bytes visible to everybody on the machine.
//		FlushGlobal
//		// Verify computes a hash of bytes as they are in storage, with [Options.Algorithm].
//		Verify
//	)
//
//	func (r Rights) String() string
//	    String names the rights as the constants do.
type Rights = memory.Rights

// What [Rights] can be.
const (
	LocalWrite      = memory.LocalWrite
	RemoteRead      = memory.RemoteRead
	RemoteWrite     = memory.RemoteWrite
	RemoteAtomic    = memory.RemoteAtomic
	FlushPersistent = memory.FlushPersistent
	FlushGlobal     = memory.FlushGlobal
	Verify          = memory.Verify
)

// Algorithm is what Verify computes. It is not on the wire: both sides must know it of the
// region.
//
//	type Algorithm uint8
//
//	const (
//		NoAlgorithm Algorithm = iota
//		// CRC32C is that of iSCSI, its four bytes in big-endian.
//		CRC32C
//		SHA256
//	)
//
//	func (a Algorithm) Size() int
//	    Size is the length of the algorithm's hashes, 0 of one that there is not.
//
//	func (a Algorithm) String() string
//	    String is the algorithm's name.
type Algorithm = memory.Algorithm

// What [Algorithm] can be.
const (
	NoAlgorithm = memory.NoAlgorithm
	CRC32C      = memory.CRC32C
	SHA256      = memory.SHA256
)
