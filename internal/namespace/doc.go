// Package namespace makes network namespaces, and cables between them.
//
//	ends, ports, err := namespace.OpenFabric(1500) // two, and where all passes that they send
//	ends[0].In(func() { a, err = net.Listen("tcp", "10.77.0.1:0") })
//
// Namespaces have no names: the kernel removes them, with everything in them,
// when the last socket, process and descriptor is gone, even if this process
// was killed. Sockets belong for ever to the namespace in which they were made, so only
// opening and connecting must happen within [Namespace.In].
//
// It needs CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN, of this user or of a user namespace.
package namespace
