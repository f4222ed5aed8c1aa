package memory

import "github.com/dgrdma/dgrdma/rdmap/ddp"

// Violation is why a peer may not do what it asked for.
type Violation uint8

// Violations, in the order in which they are looked for: a peer learns nothing of memory that it
// has no business with.
const (
	None        Violation = iota
	STag                  // the STag names nothing: it never did, or was invalidated
	Association           // the memory is another domain's, or another stream's alone
	Permission            // the memory does not have the right
	Wrap                  // the offsets go beyond 2^64
	Bounds                // the offsets are not all within the memory
)

var violations = [...]struct {
	words            string
	segment, request ddp.Fault
}{
	None:        {"no violation", 0, 0},
	STag:        {"invalid STag", ddp.TaggedSTag, ddp.ProtectionSTag},
	Association: {"STag not associated with the stream", ddp.TaggedAssociation, ddp.ProtectionAssociation},
	// RFC 5041 has no code for rights. A STag that is not valid for writing is invalid for the
	// segment: so do Linux's siw, and its peers expect it.
	Permission: {"access rights violation", ddp.TaggedSTag, ddp.ProtectionRights},
	Wrap:       {"the tagged offset wraps", ddp.TaggedWrap, ddp.ProtectionWrap},
	Bounds:     {"base or bounds violation", ddp.TaggedBounds, ddp.ProtectionBounds},
}

// String says it in words.
func (v Violation) String() string { return violations[v].words }

// Segment is the fault of a tagged segment that asks for it, in DDP's codes.
func (v Violation) Segment() ddp.Fault { return violations[v].segment }

// Request is the fault of a request that asks for it (Read, atomic, Flush, Verify), in
// RDMAP's codes.
func (v Violation) Request() ddp.Fault { return violations[v].request }
