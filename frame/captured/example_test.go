package captured_test

import (
	"fmt"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
)

func ExampleReadFile() {
	for p, err := range captured.ReadFile("../testdata/captures/udp-single.pcap", captured.Options{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		f, err := frame.Parse(p.Data)
		if err != nil {
			fmt.Println(p.Record, err)
			continue
		}
		fmt.Println(p.Record, p.Src, f)
	}
	// Output:
	// 1 127.0.0.1:33024 1->2 id 1 [txn 1 1/2 64 bytes at 0x10000 then 0x1 at 0x40] [txn 1 2/2 8 bytes at 0x8000 then 0x1 at 0x40]
	// 2 127.0.0.1:53313 2->1 id 1 ack 1+1
}
