package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"hash/crc32"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Algorithm is what Verify computes. It is not on the wire: both sides must know it of the
// region (COMMIT-027).
type Algorithm uint8

// The algorithms.
const (
	NoAlgorithm Algorithm = iota
	// CRC32C is that of iSCSI, its four bytes in big-endian.
	CRC32C
	SHA256
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	algorithms = [...]struct {
		name string
		size int
		make func() hash.Hash
	}{
		NoAlgorithm: {"none", 0, nil},
		CRC32C:      {"CRC32C", crc32.Size, func() hash.Hash { return crc32.New(castagnoli) }},
		SHA256:      {"SHA-256", sha256.Size, sha256.New},
	}
)

// String is the algorithm's name.
func (a Algorithm) String() string {
	if int(a) >= len(algorithms) {
		return "unknown"
	}
	return algorithms[a].name
}

// Size is the length of the algorithm's hashes, 0 of one that there is not.
func (a Algorithm) Size() int {
	if int(a) >= len(algorithms) {
		return 0
	}
	return algorithms[a].size
}

// verifiable checks a region's algorithm.
func verifiable(rights Rights, a Algorithm) error {
	switch {
	case int(a) >= len(algorithms):
		return fmt.Errorf("algorithm %d: there are CRC32C and SHA256", a)
	case rights&Verify == 0:
		return nil
	case a == NoAlgorithm:
		return fmt.Errorf("%w: Verify needs an Algorithm", ErrRights)
	case rights&RemoteRead == 0:
		// COMMIT-030: whoever has the hash of one byte, of whatever algorithm, finds it among 256.
		return fmt.Errorf("%w: Verify tells the bytes to who asks for the hash of few, and needs RemoteRead", ErrRights)
	}
	return nil
}

// Verify returns the hash of n bytes from the TO on. If there is a hash that they must have,
// and they have not, it is an error (COMMIT-024, COMMIT-025).
//
// A file's bytes are brought to its storage first, and read from there: past the system's
// own copies with O_DIRECT where the file system has it, otherwise through them, since Linux has
// no other way to say it. Other memory has no storage. It reads as long as it must, and ends
// when ctx does: it is not for the goroutine that receives. Unless ctx ended, the error has a
// [ddp.Fault] in it.
func (s *Stream) Verify(ctx context.Context, stag uint32, to uint64, n uint32, want []byte) (sum []byte, err error) {
	g, span, err := s.request(stag, to, n, Verify)
	if err != nil {
		return nil, err
	}
	r := g.region
	if len(want) != 0 && len(want) != r.algorithm.Size() {
		return nil, ErrHashLength
	}
	h := algorithms[r.algorithm].make()
	if r.file != nil {
		err = r.file.read(ctx, g, span.Bytes, h)
	} else {
		err = readMemory(ctx, g, span, h)
	}
	if err != nil {
		return nil, g.lost(err, ddp.OperationStream)
	}
	if sum = h.Sum(nil); len(want) != 0 && !bytes.Equal(sum, want) {
		return nil, ErrMismatch
	}
	return sum, nil
}

// request finds what a request of the peer is about.
func (s *Stream) request(stag uint32, to uint64, n uint32, right Rights) (*Grant, ddp.Span, error) {
	g, bytes, epoch, v := s.find(stag, to, n, right)
	if v != None {
		return nil, ddp.Span{}, v.Request()
	}
	return g, ddp.Span{Bytes: bytes, Guard: g, Epoch: epoch}, nil
}

// piece is how much is hashed between Enter and Leave: the owner waits for it.
const piece = 64 << 10

func readMemory(ctx context.Context, g *Grant, all ddp.Span, h hash.Hash) error {
	for len(all.Bytes) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		span := all
		span.Bytes = all.Bytes[:min(piece, len(all.Bytes))]
		if err := span.Touch(func(b []byte) { h.Write(b) }); err != nil {
			return g.requested(span, err)
		}
		all.Bytes = all.Bytes[len(span.Bytes):]
	}
	return nil
}
