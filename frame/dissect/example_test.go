package dissect_test

import (
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/dissect"
)

func ExampleReadFile() {
	for p, err := range dissect.ReadFile("../testdata/captures/udp-single.pcap", dissect.Options{}) {
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

func ExampleRegister() {
	if err := dissect.Register(dissect.DefaultEtherType); err != nil {
		fmt.Println(err)
		return
	}
	data := []byte{
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0xF0, 0x42, // Ethernet
		1, 0, 2, 0, 7, 0, 1, 0, 4, 0, // an acknowledgement of frames 1 to 4
	}
	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.NoCopy)
	if d, ok := p.Layer(dissect.LayerTypeDGRDMA).(*dissect.DGRDMA); ok {
		fmt.Println(d.Frame)
	}
	// Output: 2->1 id 7 ack 1+4
}
