module @convolution {
  func.func public @main(%arg0: tensor<1x4x4x2xf16>, %arg1: tensor<3x2x3x3xf16>, %arg2: tensor<3xf16>) -> tensor<1x2x4x3xf16> {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x4x4x2xf16>, tensor<3x2x3x3xf16>) -> tensor<1x2x4x3xf32>
    %1 = stablehlo.convert %arg2 : (tensor<3xf16>) -> tensor<3xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [3] : (tensor<3xf32>) -> tensor<1x2x4x3xf32>
    %3 = stablehlo.add %0, %2 : tensor<1x2x4x3xf32>
    %4 = stablehlo.convert %3 : (tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf16>
    return %4 : tensor<1x2x4x3xf16>
  }
}
