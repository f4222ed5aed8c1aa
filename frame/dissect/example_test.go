package dissect_test

import (
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/dissect"
)

func ExampleRegister() {
	if err := dissect.Register(frame.EtherType); err != nil {
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
