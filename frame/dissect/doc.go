// Package dissect makes DG/RDMA frames a layer of gopacket. It is for tools and
// tests; nothing here sends or receives. Frames are found in captures by package
// captured, which does without gopacket's registry.
//
// [DGRDMA] is a layer that decodes in place, through frame.Parse, and
// serializes. Over UDP a [Prefix] comes first. What endpoints with a key send is a
// [Sealed] instead, and frames of a session are a [Session]. gopacket keeps its layer types
// in global tables, so nothing happens before [Register] or [RegisterUDP] is
// called; the layers work without it in a DecodingLayerParser that starts with
// them:
//
//	if err := dissect.Register(frame.EtherType); err != nil {
//		return err
//	}
//	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.NoCopy)
//	if d, ok := p.Layer(dissect.LayerTypeDGRDMA).(*dissect.DGRDMA); ok {
//		fmt.Println(d.Frame)
//	}
//
// # Rules
//
// Buffers: a layer is a view of the bytes it was decoded from. Concurrency: Register
// writes tables that gopacket reads without a lock: call it before decoding
// starts.
package dissect
