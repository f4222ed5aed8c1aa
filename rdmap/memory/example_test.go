package memory_test

import (
	"fmt"

	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// A peer writes to a part of the memory, for as long as it may.
func Example() {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream() // one for each connection

	buf := make([]byte, 4096)
	region, err := domain.Register(buf, memory.RemoteRead|memory.RemoteWrite, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	window, err := region.Bind(1024, 16, memory.RemoteWrite, &memory.Options{Stream: stream})
	if err != nil {
		fmt.Println(err)
		return
	}

	// What arrives for the STag that the peer was told.
	arrives := func(to uint64, payload string) {
		span, violation := stream.Find(window.STag(), to, uint32(len(payload)), memory.RemoteWrite)
		if violation != memory.None {
			fmt.Println(violation.Segment())
			return
		}
		if err := span.Touch(func(to []byte) { copy(to, payload) }); err != nil {
			fmt.Println(err)
		}
	}
	arrives(4, "hello")
	arrives(12, "hello")
	fmt.Printf("%q\n", buf[1024:1040])

	region.Invalidate()
	arrives(4, "too late")
	// Output:
	// DDP: tagged buffer: base or bounds violation (1/1/01)
	// "\x00\x00\x00\x00hello\x00\x00\x00\x00\x00\x00\x00"
	// DDP: tagged buffer: invalid STag (1/1/00)
}
