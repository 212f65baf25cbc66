module @constants {
  func.func public @main() -> (tensor<20xf32>, tensor<bf16>, tensor<f16>, tensor<f32>, tensor<3xf32>, tensor<2xi1>) {
    %0 = stablehlo.constant dense<"0x000000000000003F0000803F0000C03F0000004000002040000040400000604000008040000090400000A0400000B0400000C0400000D0400000E0400000F04000000041000008410000104100001841"> : tensor<20xf32>
    %1 = stablehlo.constant dense<0x3DCD> : tensor<bf16> // 0.100097656
    %2 = stablehlo.constant dense<-65504.0> : tensor<f16>
    %3 = stablehlo.constant dense<-1.0> : tensor<f32>
    %4 = stablehlo.log %3 : tensor<f32>
    %5 = stablehlo.constant dense<[1.0, 0.0, 0x000116C2]> : tensor<3xf32>
    %6 = stablehlo.constant dense<false> : tensor<2xi1>
    return %0, %1, %2, %4, %5, %6 : tensor<20xf32>, tensor<bf16>, tensor<f16>, tensor<f32>, tensor<3xf32>, tensor<2xi1>
  }
}
