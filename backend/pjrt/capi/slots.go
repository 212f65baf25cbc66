package capi

// slot is a function of the PJRT_Api table: at byte 40 + 8*index.
type slot struct {
	index int
	name  string // as in pjrt_c_api.h
}

// The functions that this package calls. Numbers never change within major version 0.
var (
	slotErrorDestroy               = slot{0, "PJRT_Error_Destroy"}
	slotErrorMessage               = slot{1, "PJRT_Error_Message"}
	slotErrorGetCode               = slot{2, "PJRT_Error_GetCode"}
	slotPluginInitialize           = slot{3, "PJRT_Plugin_Initialize"}
	slotPluginAttributes           = slot{4, "PJRT_Plugin_Attributes"}
	slotEventDestroy               = slot{5, "PJRT_Event_Destroy"}
	slotEventIsReady               = slot{6, "PJRT_Event_IsReady"}
	slotEventError                 = slot{7, "PJRT_Event_Error"}
	slotEventAwait                 = slot{8, "PJRT_Event_Await"}
	slotEventOnReady               = slot{9, "PJRT_Event_OnReady"}
	slotClientCreate               = slot{10, "PJRT_Client_Create"}
	slotClientDestroy              = slot{11, "PJRT_Client_Destroy"}
	slotClientPlatformName         = slot{12, "PJRT_Client_PlatformName"}
	slotClientProcessIndex         = slot{13, "PJRT_Client_ProcessIndex"}
	slotClientPlatformVersion      = slot{14, "PJRT_Client_PlatformVersion"}
	slotClientDevices              = slot{15, "PJRT_Client_Devices"}
	slotClientAddressableDevices   = slot{16, "PJRT_Client_AddressableDevices"}
	slotClientAddressableMemories  = slot{19, "PJRT_Client_AddressableMemories"}
	slotClientCompile              = slot{20, "PJRT_Client_Compile"}
	slotClientDefaultAssignment    = slot{21, "PJRT_Client_DefaultDeviceAssignment"}
	slotClientBufferFromHost       = slot{22, "PJRT_Client_BufferFromHostBuffer"}
	slotDescriptionID              = slot{23, "PJRT_DeviceDescription_Id"}
	slotDescriptionProcessIndex    = slot{24, "PJRT_DeviceDescription_ProcessIndex"}
	slotDescriptionAttributes      = slot{25, "PJRT_DeviceDescription_Attributes"}
	slotDescriptionKind            = slot{26, "PJRT_DeviceDescription_Kind"}
	slotDescriptionToString        = slot{28, "PJRT_DeviceDescription_ToString"}
	slotDeviceGetDescription       = slot{29, "PJRT_Device_GetDescription"}
	slotDeviceLocalHardwareID      = slot{31, "PJRT_Device_LocalHardwareId"}
	slotDeviceAddressableMemories  = slot{32, "PJRT_Device_AddressableMemories"}
	slotDeviceDefaultMemory        = slot{33, "PJRT_Device_DefaultMemory"}
	slotDeviceMemoryStats          = slot{34, "PJRT_Device_MemoryStats"}
	slotMemoryID                   = slot{35, "PJRT_Memory_Id"}
	slotMemoryKind                 = slot{36, "PJRT_Memory_Kind"}
	slotMemoryDevices              = slot{39, "PJRT_Memory_AddressableByDevices"}
	slotExecutableDestroy          = slot{40, "PJRT_Executable_Destroy"}
	slotExecutableName             = slot{41, "PJRT_Executable_Name"}
	slotExecutableNumReplicas      = slot{42, "PJRT_Executable_NumReplicas"}
	slotExecutableNumPartitions    = slot{43, "PJRT_Executable_NumPartitions"}
	slotExecutableNumOutputs       = slot{44, "PJRT_Executable_NumOutputs"}
	slotExecutableCodeSize         = slot{45, "PJRT_Executable_SizeOfGeneratedCodeInBytes"}
	slotExecutableCostAnalysis     = slot{46, "PJRT_Executable_GetCostAnalysis"}
	slotExecutableOptimizedProgram = slot{48, "PJRT_Executable_OptimizedProgram"}
	slotExecutableSerialize        = slot{49, "PJRT_Executable_Serialize"}
	slotLoadedDestroy              = slot{50, "PJRT_LoadedExecutable_Destroy"}
	slotLoadedGetExecutable        = slot{51, "PJRT_LoadedExecutable_GetExecutable"}
	slotLoadedAddressableDevices   = slot{52, "PJRT_LoadedExecutable_AddressableDevices"}
	slotLoadedExecute              = slot{55, "PJRT_LoadedExecutable_Execute"}
	slotDeserializeAndLoad         = slot{56, "PJRT_Executable_DeserializeAndLoad"}
	slotBufferDestroy              = slot{58, "PJRT_Buffer_Destroy"}
	slotBufferElementType          = slot{59, "PJRT_Buffer_ElementType"}
	slotBufferDimensions           = slot{60, "PJRT_Buffer_Dimensions"}
	slotBufferOnDeviceSize         = slot{64, "PJRT_Buffer_OnDeviceSizeInBytes"}
	slotBufferDevice               = slot{65, "PJRT_Buffer_Device"}
	slotBufferMemory               = slot{66, "PJRT_Buffer_Memory"}
	slotBufferDelete               = slot{67, "PJRT_Buffer_Delete"}
	slotBufferIsDeleted            = slot{68, "PJRT_Buffer_IsDeleted"}
	slotBufferCopyToDevice         = slot{69, "PJRT_Buffer_CopyToDevice"}
	slotBufferToHost               = slot{70, "PJRT_Buffer_ToHostBuffer"}
	slotBufferIsOnCPU              = slot{71, "PJRT_Buffer_IsOnCpu"}
	slotBufferReadyEvent           = slot{72, "PJRT_Buffer_ReadyEvent"}
	slotTopologyCreate             = slot{82, "PJRT_TopologyDescription_Create"}
	slotTopologyDestroy            = slot{83, "PJRT_TopologyDescription_Destroy"}
	slotTopologyPlatformName       = slot{84, "PJRT_TopologyDescription_PlatformName"}
	slotTopologyPlatformVersion    = slot{85, "PJRT_TopologyDescription_PlatformVersion"}
	slotTopologyDescriptions       = slot{86, "PJRT_TopologyDescription_GetDeviceDescriptions"}
	slotTopologySerialize          = slot{87, "PJRT_TopologyDescription_Serialize"}
	slotTopologyAttributes         = slot{88, "PJRT_TopologyDescription_Attributes"}
	slotCompile                    = slot{89, "PJRT_Compile"}
	slotExecutableOutputTypes      = slot{90, "PJRT_Executable_OutputElementTypes"}
	slotExecutableOutputDims       = slot{91, "PJRT_Executable_OutputDimensions"}
	slotBufferCopyToMemory         = slot{92, "PJRT_Buffer_CopyToMemory"}
	slotExecutableFingerprint      = slot{94, "PJRT_Executable_Fingerprint"}
	slotClientTopology             = slot{95, "PJRT_Client_TopologyDescription"}
	slotExecutableMemoryStats      = slot{96, "PJRT_Executable_GetCompiledMemoryStats"}
	slotTopologyDeserialize        = slot{114, "PJRT_TopologyDescription_Deserialize"}
	slotClientCreateAliasBuffer    = slot{115, "PJRT_Client_CreateAliasBuffer"}
	slotClientFulfillAliasBuffer   = slot{116, "PJRT_Client_FulfillAliasBuffer"}
)
